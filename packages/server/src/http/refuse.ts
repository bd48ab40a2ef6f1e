import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from '@fencepost/engine'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError, refusalOf } from '../error.ts'

/** Answers with an error, whatever it was; what callers cannot be told goes to the log. */
export function refuse(error: unknown, request: FastifyRequest, reply: FastifyReply, logger: Logger): void {
  const refusal = refusalOf(error) ?? frameworkRefusal(error) ?? unexpected(error, request, logger)
  if (refusal.status >= 500 && refusal.code !== 'internal_error' && refusal.cause !== undefined) {
    logger.warn({ err: refusal.cause, request_id: request.id }, 'request_refused')
  }
  void reply.code(refusal.status).headers(refusal.headers).type('application/json; charset=utf-8')
  void reply.send(JSON.stringify(refusal.body))
}

/** What Fastify itself refuses, in our words. */
function frameworkRefusal(error: unknown): ApiError | undefined {
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown }
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new ApiError('body_too_large', 'The body is larger than is allowed.')
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
    case 'FST_ERR_CTP_INVALID_TYPE':
      return new ApiError('media_type_unsupported', 'Send the body as application/json.')
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new ApiError('http_malformed', 'The body is not as long as Content-Length says.')
    case 'FST_ERR_BAD_URL':
      return new ApiError('http_malformed', 'The address is not a valid URL.')
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new ApiError('route_unknown', 'There is no such route; /docs tells of those there are.')
    default:
      return String(code).startsWith('FST_') && Number(statusCode) < 500
        ? new ApiError('http_malformed', 'The request cannot be understood.')
        : undefined
  }
}

function unexpected(error: unknown, request: FastifyRequest, logger: Logger): ApiError {
  logger.error({ err: error, request_id: request.id, method: request.method, url: request.url }, 'request_failed')
  return new ApiError('internal_error', 'Something went wrong in the server. Its log says what, by the request id.', {
    details: { request_id: request.id },
  })
}

/** Answers what is not even HTTP, or does not arrive, on the bare connection. */
export function refuseConnection(error: Error & { code?: string }, socket: Socket): void {
  // Without a handshake nothing can be written: an answer would wait for one, and hold the connection for ever.
  if (error.code === 'ECONNRESET' || /^ERR_(TLS|SSL)_/.test(error.code ?? '') || !socket.writable) {
    socket.destroy()
    return
  }
  const { status, body } = connectionRefusal(error.code)
  const text = JSON.stringify(body)
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
  )
}

function connectionRefusal(code: string | undefined): ApiError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new ApiError('headers_too_large', 'The headers are larger than is allowed.')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new ApiError('request_timeout', 'The request did not arrive in time.')
  return new ApiError('http_malformed', 'The request is not valid HTTP.')
}
