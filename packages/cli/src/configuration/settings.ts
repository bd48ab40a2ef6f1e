import type { ValueOf, ValueSpec } from './value.ts'

/** What can be configured: by a flag, by variables of the environment, or in the file. */
export interface Setting extends ValueSpec {
  /** Its variables; the first one that is set counts. */
  readonly env: readonly string[]
  readonly default?: string | number | boolean
  /** Never shown in full. */
  readonly secret?: boolean
}

/**
 * Every setting, by its key in the configuration file; its flag is the same in kebab-case. The defaults are those of the
 * engine and the server, written out: importing those takes longer than most commands do.
 * docs/reference/configuration.md lists the same table; a test compares all of them.
 */
export const settings = {
  database: {
    kind: 'text',
    placeholder: 'url',
    description: 'The Postgres to work on; an embedded one if left out.',
    env: ['FENCEPOST_DATABASE', 'DATABASE_URL'],
  },
  directory: {
    kind: 'text',
    placeholder: 'path',
    description: 'The folder of the embedded Postgres.',
    env: ['FENCEPOST_DIRECTORY'],
    default: '.fencepost/postgres',
  },
  schema: {
    kind: 'text',
    placeholder: 'name',
    description: 'The schema that holds the relations.',
    env: ['FENCEPOST_SCHEMA'],
    default: 'fencepost',
  },
  migrate: {
    kind: 'boolean',
    description: 'Run the migrations when starting; otherwise a schema of another version is refused.',
    env: ['FENCEPOST_MIGRATE'],
    default: true,
  },
  module: {
    kind: 'text',
    placeholder: 'path',
    description: 'A module, .ts or .js, that exports an array named operations; or: samples.',
    env: ['FENCEPOST_MODULE'],
  },
  catalogs: {
    kind: 'text',
    placeholder: 'path',
    description: 'A JSON file that describes the catalogs whose tables are maintained.',
    env: ['FENCEPOST_CATALOGS'],
  },
  sampleLake: {
    kind: 'boolean',
    description: 'With the embedded Postgres, and neither catalogs nor a module: maintain a lake of samples.',
    env: ['FENCEPOST_SAMPLE_LAKE'],
    default: true,
  },
  host: {
    kind: 'text',
    placeholder: 'address',
    description: 'Where to listen. Anything but loopback needs a token to exist.',
    env: ['FENCEPOST_HOST'],
    default: '127.0.0.1',
  },
  port: {
    kind: 'integer',
    placeholder: 'number',
    description: 'The port to listen on; 0 takes any that is free.',
    env: ['FENCEPOST_PORT'],
    default: 8080,
    min: 0,
    max: 65_535,
  },
  corsOrigins: {
    kind: 'list',
    placeholder: 'origins',
    description: 'Origins whose pages may call the API from a browser; none if left out.',
    env: ['FENCEPOST_CORS_ORIGINS'],
  },
  trustProxy: {
    kind: 'list',
    placeholder: 'proxies',
    description:
      'Behind proxies: how many a request passes, or their addresses (10.0.0.0/8). Callers are then told apart by X-Forwarded-For.',
    env: ['FENCEPOST_TRUST_PROXY'],
  },
  tlsCert: {
    kind: 'text',
    placeholder: 'path',
    description: 'The certificate, and its chain, to serve HTTPS with; a PEM file.',
    env: ['FENCEPOST_TLS_CERT'],
  },
  tlsKey: {
    kind: 'text',
    placeholder: 'path',
    description: 'The private key of the certificate; a PEM file.',
    env: ['FENCEPOST_TLS_KEY'],
  },
  accessLog: {
    kind: 'boolean',
    description: 'Log a line for every request.',
    env: ['FENCEPOST_ACCESS_LOG'],
    default: false,
  },
  maxBodyBytes: {
    kind: 'integer',
    placeholder: 'bytes',
    description: 'The largest body of a request.',
    env: ['FENCEPOST_MAX_BODY_BYTES'],
    default: 1_048_576,
    min: 1,
  },
  rateLimitPerSecond: {
    kind: 'integer',
    placeholder: 'number',
    description: 'Requests of one caller in the long run, by token or address.',
    env: ['FENCEPOST_RATE_LIMIT_PER_SECOND'],
    default: 1_000,
    min: 1,
  },
  concurrency: {
    kind: 'integer',
    placeholder: 'number',
    description: 'How many handlers run at once.',
    env: ['FENCEPOST_CONCURRENCY'],
    default: 10,
    min: 1,
    max: 10_000,
  },
  queues: {
    kind: 'list',
    placeholder: 'names',
    description: 'The queues to claim from; those of its operations if left out.',
    env: ['FENCEPOST_QUEUES'],
  },
  graceMs: {
    kind: 'integer',
    placeholder: 'ms',
    description: 'How long handlers have to end, once told to, before their jobs are given back without them.',
    env: ['FENCEPOST_GRACE_MS'],
    default: 1_000,
    min: 0,
  },
  pollMs: {
    kind: 'integer',
    placeholder: 'ms',
    description: 'How often a worker looks for work that nobody announced.',
    env: ['FENCEPOST_POLL_MS'],
    default: 10_000,
    min: 10,
  },
  staleMs: {
    kind: 'integer',
    placeholder: 'ms',
    description: 'How old a claim must be before its job can be recovered.',
    env: ['FENCEPOST_STALE_MS'],
    default: 1_800_000,
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
  },
  retentionMs: {
    kind: 'integer',
    placeholder: 'ms',
    description: 'How long finished jobs are kept.',
    env: ['FENCEPOST_RETENTION_MS'],
    default: 7_776_000_000,
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
  },
  maxConnections: {
    kind: 'integer',
    placeholder: 'number',
    description: 'The size of the pool of connections to Postgres. A worker has a few more.',
    env: ['FENCEPOST_MAX_CONNECTIONS'],
    default: 10,
    min: 1,
  },
  logLevel: {
    kind: 'text',
    choices: ['silent', 'error', 'warn', 'info', 'debug'],
    description: 'The least of what is logged to standard error.',
    env: ['FENCEPOST_LOG_LEVEL'],
    default: 'info',
  },
  url: {
    kind: 'text',
    placeholder: 'url',
    description: 'The server to talk to; if left out, the port of the configuration on 127.0.0.1.',
    env: ['FENCEPOST_URL'],
  },
  token: {
    kind: 'text',
    placeholder: 'token',
    description: 'The token to talk to the server with.',
    env: ['FENCEPOST_TOKEN'],
    secret: true,
  },
  timeoutMs: {
    kind: 'integer',
    placeholder: 'ms',
    description: 'How long the server may take to answer.',
    env: ['FENCEPOST_TIMEOUT_MS'],
    default: 60_000,
    min: 1,
  },
} as const satisfies Record<string, Setting>

export type SettingName = keyof typeof settings

export const settingNames = Object.keys(settings) as SettingName[]

type ValueOfSetting<Name extends SettingName> =
  ValueOf<(typeof settings)[Name]> | ((typeof settings)[Name] extends { default: unknown } ? never : undefined)

/** The settings of a command, with their defaults filled in. */
export type Settings<Name extends SettingName = SettingName> = { readonly [N in Name]: ValueOfSetting<N> }

/** What the configuration file may hold. */
export type Config = { readonly [N in SettingName]?: ValueOf<(typeof settings)[N]> }

/** The flag of a setting or option: graceMs is --grace-ms. */
export function flagOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
