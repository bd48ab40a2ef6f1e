import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Route } from '@fencepost/client'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Answer } from '../endpoint.ts'

const compress = promisify(gzip)
// About one packet: below, compressing only costs.
const compressFromBytes = 1_400
const fastCompression = { level: 1 }

/** Sends what a handler answered: with an ETag where asking again is likely, and compressed where that is worth it. */
export async function send(
  route: Route,
  answer: Exclude<Answer, { stream: unknown }>,
  request: FastifyRequest,
  reply: FastifyReply,
  sending: (bytes: number) => void,
): Promise<FastifyReply> {
  void reply.code(route.status).headers(answer.headers ?? {})
  if (route.answer === null) return reply.send()
  const isJson = 'json' in answer || !('mediaType' in route.answer)
  void reply.type(isJson || !('mediaType' in route.answer) ? 'application/json; charset=utf-8' : route.answer.mediaType)
  const text = 'json' in answer ? answer.json : isJson ? JSON.stringify(answer.body) : String(answer.body)
  sending(text.length)
  // What is changed is answered as it is: a secret beside text that others choose must not be compressed with it.
  if (route.method !== 'GET' || route.role === 'admin') return reply.send(text)
  if (isJson) {
    const etag = `W/"${createHash('sha1').update(text).digest('base64url')}"`
    void reply.headers({ etag, 'cache-control': 'private, no-cache' })
    if (isKnown(request.headers['if-none-match'], etag)) return reply.code(304).removeHeader('content-type').send()
  }
  if (text.length < compressFromBytes) return reply.send(text)
  void reply.header('vary', varyWith(reply.getHeader('vary')))
  if (!acceptsGzip(request.headers['accept-encoding'])) return reply.send(text)
  return reply.header('content-encoding', 'gzip').send(await compress(text, fastCompression))
}

function isKnown(header: string | undefined, etag: string): boolean {
  return header !== undefined && header.split(',').some((one) => one.trim() === etag || one.trim() === '*')
}

function varyWith(vary: unknown): string {
  return typeof vary === 'string' ? `${vary}, Accept-Encoding` : 'Accept-Encoding'
}

function acceptsGzip(header: string | string[] | undefined): boolean {
  return /(^|,)\s*gzip\s*(?!;\s*q=0(\.0*)?\s*(,|$))/i.test(String(header ?? ''))
}
