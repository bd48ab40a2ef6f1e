import { isIP } from 'node:net'
import type { Engine, Logger } from '@fencepost/engine'
import { isLoopback } from './access/loopback.ts'
import type { Application } from './application.ts'

/** How a server is opened. */
export interface ServerOptions {
  engine: Engine
  /** Where to listen. Anything but loopback needs a token to exist. */
  host?: string
  /** 0 takes any that is free. */
  port?: number
  applications?: readonly Application[]
  /** The largest body of a request. */
  maxBodyBytes?: number
  /** The largest answer that lists jobs or events; one of them is listed however large it is. */
  maxAnswerBytes?: number
  /** The largest sum of answers that their callers have not read; beyond it, connections are cut off. */
  maxUnreadBytes?: number
  /** The largest sum of a request's headers. */
  maxHeaderBytes?: number
  /** How deep the JSON of a body may be nested. */
  maxBodyDepth?: number
  /** Requests of one caller in the long run, by token or address. */
  rateLimitPerSecond?: number
  /** Requests of one caller at once. */
  rateLimitBurst?: number
  maxConnections?: number
  /** Streams of events at once. */
  maxStreams?: number
  /** Streams of events of one caller at once, by token or address. */
  maxStreamsPerCaller?: number
  /** How long a request may take to arrive. */
  requestTimeoutMs?: number
  /** How long its headers may take. */
  headersTimeoutMs?: number
  /** How long a connection may say nothing at all. */
  idleTimeoutMs?: number
  /** Origins whose pages may call the API from a browser; none if left out. */
  corsOrigins?: readonly string[]
  /**
   * Take the caller's address from X-Forwarded-For: how many proxies a request passes, or their addresses (CIDR). What
   * the caller itself wrote into the header is never believed.
   */
  trustProxy?: false | number | readonly string[]
  /** The certificate and key to serve HTTPS with, in PEM; HTTP if left out. */
  tls?: { cert: string | Buffer; key: string | Buffer } | undefined
  /** Log a line for every request; denied ones, and changes of tokens and drain, are logged in any case. */
  accessLog?: boolean
  /** How often viewers of events are told that the connection lives. */
  pingMs?: number
  /** How often new events are looked for while somebody views, beside being told of them. */
  eventPollMs?: number
  sweepMs?: number
  /** How often jobs older than the retention time are removed. */
  retainMs?: number
  /** How old the numbers of /metrics may be. */
  metricsMs?: number
  /** After close(): how long new requests are still answered, with 503, before the port is closed. */
  closeDelayMs?: number
  /** After close(): how long requests may take to end. */
  closeTimeoutMs?: number
  logger?: Logger
}

export type CheckedServerOptions = Required<Omit<ServerOptions, 'tls'>> & Pick<ServerOptions, 'tls'>

export const serverDefaults = {
  host: '127.0.0.1',
  port: 8080,
  maxBodyBytes: 1_048_576,
  maxAnswerBytes: 2_097_152,
  maxUnreadBytes: 134_217_728,
  maxHeaderBytes: 16_384,
  maxBodyDepth: 64,
  rateLimitPerSecond: 1_000,
  rateLimitBurst: 2_000,
  maxConnections: 10_000,
  maxStreams: 1_000,
  maxStreamsPerCaller: 100,
  requestTimeoutMs: 30_000,
  headersTimeoutMs: 10_000,
  idleTimeoutMs: 60_000,
  trustProxy: false,
  accessLog: false,
  pingMs: 15_000,
  eventPollMs: 50,
  sweepMs: 5_000,
  retainMs: 3_600_000,
  metricsMs: 5_000,
  closeDelayMs: 0,
  closeTimeoutMs: 10_000,
} as const

const silentLogger: Logger = { info() {}, warn() {}, error() {} }

/** Checks the options once, at the edge, and fills in the defaults. */
export function checkServerOptions(options: ServerOptions): CheckedServerOptions {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  const checked = {
    applications: [],
    corsOrigins: [],
    logger: silentLogger,
    ...serverDefaults,
    ...given,
  } as unknown as CheckedServerOptions
  for (const [name, value] of Object.entries(serverDefaults)) {
    const own = checked[name as keyof typeof serverDefaults]
    const least = name === 'port' || name === 'closeDelayMs' ? 0 : 1
    if (typeof value === 'number' && !(Number.isInteger(own) && Number(own) >= least && Number(own) <= 2_147_483_647)) {
      throw new ServerStartError('options_invalid', `${name} is ${String(own)}; give a whole number from ${least}.`)
    }
  }
  checkTrustProxy(checked.trustProxy)
  if (checked.port > 65_535) {
    throw new ServerStartError('options_invalid', `port is ${checked.port}; give one from 0 to 65535.`)
  }
  return checked
}

function checkTrustProxy(trust: CheckedServerOptions['trustProxy']): void {
  if (trust === false || (typeof trust === 'number' && Number.isInteger(trust) && trust >= 1)) return
  if (Array.isArray(trust) && trust.length > 0 && trust.every(isNetwork)) return
  throw new ServerStartError(
    'options_invalid',
    `trustProxy is ${JSON.stringify(trust)}; give how many proxies a request passes, or their addresses: 10.0.0.0/8.`,
  )
}

function isNetwork(text: unknown): boolean {
  if (typeof text !== 'string') return false
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}

/** Why a server cannot start. */
export class ServerStartError extends Error {
  readonly code: 'options_invalid' | 'access_unprotected' | 'address_unavailable'

  constructor(code: ServerStartError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ServerStartError'
    this.code = code
  }
}

/** Refuses an address that others can reach as long as nobody needs a token. */
export function requireProtection(host: string, usableTokens: number): void {
  if (isLoopback(host) || usableTokens > 0) return
  throw new ServerStartError(
    'access_unprotected',
    `There is no token, and ${host} can be reached from other machines: everybody could do everything. ` +
      'Make a token first, or listen on 127.0.0.1.',
  )
}
