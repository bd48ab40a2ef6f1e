import { createClient, errorAnswer, type Client, type Role } from '@fencepost/client'
import { defer, child, operation, PermanentError, type Engine, type EngineOptions } from '@fencepost/engine'
import { z } from 'zod'
import { openBed, type Bed } from '../../engine/test/bed.ts'
import { createToken, openServer, type Server, type ServerOptions } from '../src/index.ts'

/** Takes any object; keys are given when it is submitted. */
export const echo = operation('echo', {
  keys: 'caller',
  payload: z.looseObject({}),
  run: async ({ payload }) => payload,
})
/** Has a schema that refuses things, and a lock of its own. */
export const resize = operation('resize', {
  payload: z.object({ image: z.string() }),
  lock: ({ image }) => `image/${image}`,
  async run({ attempt }) {
    await attempt.step('read', async () => 1)
    await attempt.emit('resize.read', { message: 'read it', progress: { current: 1, total: 2 } })
    return { bytes: 42 }
  },
})
const failing = operation('failing', {
  payload: z.looseObject({}),
  run: async () => {
    throw new PermanentError('it does not work')
  },
})
export const fan = operation('fan', {
  payload: z.object({ children: z.int() }),
  run: async ({ payload }) => defer(Array.from({ length: payload.children }, () => child(echo, {}))),
})
const operations = [echo, resize, failing, fan]

/** A server over HTTP on a database of its own. */
export interface ServerBed {
  bed: Bed
  engine: Engine
  server: Server
  client: Client
  url: string
  /** One more server on the same database, as another process would be. */
  open(options?: Partial<ServerOptions>): Promise<Server>
  /** A request as it is, without a client in between. */
  http(method: string, path: string, init?: HttpInit): Promise<HttpAnswer>
  /** A token of this role; from the first on, every request needs one. */
  token(role: Role, name?: string): Promise<string>
  /** Runs everything that is due. */
  runAll(): Promise<void>
  close(): Promise<void>
}

export interface HttpInit {
  token?: string | undefined
  body?: unknown
  /** The body as it is, instead of as JSON. */
  raw?: string | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
  url?: string
}

export interface HttpAnswer {
  status: number
  headers: Headers
  text: string
  json: unknown
  /** The code of an error; undefined for a success. */
  code: string | undefined
}

let nthToken = 0

export async function openServerBed(
  options: Partial<ServerOptions> = {},
  engineOptions: Partial<EngineOptions> = {},
): Promise<ServerBed> {
  const bed = await openBed({ operations, ...engineOptions })
  const { engine } = bed
  const servers: Server[] = []
  const open: ServerBed['open'] = async (more = {}) => {
    const server = await openServer({
      engine,
      port: 0,
      rateLimitPerSecond: 1e6,
      rateLimitBurst: 1e6,
      ...options,
      ...more,
    })
    servers.push(server)
    return server
  }
  const server = await open()
  return {
    bed,
    engine,
    server,
    client: createClient({ url: server.url }),
    url: server.url,
    open,
    http: (method, path, init = {}) => http(init.url ?? server.url, method, path, init),
    token: async (role, name = `${role} ${(nthToken += 1)}`) =>
      (await createToken(engine.database, { name, role }, undefined)).token,
    runAll: async () => {
      for (;;) {
        const attempts = await engine.claim({ limit: 100 })
        if (attempts.length === 0) return
        for (const attempt of attempts) await engine.run(attempt)
      }
    },
    close: async () => {
      await Promise.all(servers.map((one) => one.close()))
      await bed.close()
    },
  }
}

async function http(url: string, method: string, path: string, init: HttpInit): Promise<HttpAnswer> {
  const body = init.raw ?? (init.body === undefined ? undefined : JSON.stringify(init.body))
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      ...(init.token === undefined ? {} : { authorization: `Bearer ${init.token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...init.headers,
    },
    ...(body === undefined ? {} : { body }),
  })
  const text = await response.text()
  const isJson = text !== '' && response.headers.get('content-type')?.startsWith('application/json') === true
  const json: unknown = isJson ? JSON.parse(text) : undefined
  const refused = errorAnswer.strict().safeParse(json)
  return { status: response.status, headers: response.headers, text, json, code: refused.data?.error.code }
}
