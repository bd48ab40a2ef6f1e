import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { connect } from 'amqplib'
import { vi } from 'vitest'
import { freePorts } from '../free-ports.ts'

// Debian's scripts themselves, not their wrappers in /usr/sbin, which change the user and know only one node.
const programs = ['/usr/lib/rabbitmq/bin', '/opt/homebrew/opt/rabbitmq/sbin'].find((path) =>
  existsSync(join(path, 'rabbitmq-server')),
)

/** A broker of a test's own: on loopback, on ports of its own, with its data among the temporary files. */
export interface RabbitMqServer {
  url: string
  /** Runs rabbitmqctl and returns what it prints. */
  ctl(...args: string[]): Promise<string>
  stop(): Promise<void>
}

/** Whether there is a RabbitMQ server here. Says loudly what is not tested if not; in CI it must be there. */
export function hasRabbitMq(): boolean {
  if (programs !== undefined) return true
  const how = 'Install it with: apt-get install -y rabbitmq-server'
  if (process.env['CI'] !== undefined) throw new Error(`There is no rabbitmq-server on this machine. ${how}`)
  console.warn(`!! SKIPPED: there is no rabbitmq-server, so wake-ups over RabbitMQ are not tested. ${how}`)
  return false
}

// Ends the broker and its port mapper when its input is closed: by stop(), or by the end of the tests, however they end.
const keeper = `
  epmd & epmd=$!
  "$PROGRAMS/rabbitmq-server" & server=$!
  cat >/dev/null
  kill $server; wait $server
  kill $epmd; wait $epmd
  rm -rf "$HOME"
`

export async function startRabbitMq(): Promise<RabbitMqServer> {
  const home = mkdtempSync(join(tmpdir(), 'fencepost-rabbitmq-'))
  const [port, distributionPort, epmdPort] = await freePorts(3)
  writeFileSync(join(home, 'enabled_plugins'), '[].')
  writeFileSync(join(home, 'rabbitmq-env.conf'), '')
  const env = {
    ...process.env,
    PROGRAMS: programs,
    HOME: home, // of the Erlang cookie
    ERL_EPMD_ADDRESS: '127.0.0.1',
    ERL_EPMD_PORT: String(epmdPort),
    ERL_CRASH_DUMP_SECONDS: '0',
    RABBITMQ_NODENAME: `fencepost-${port}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(distributionPort),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
    RABBITMQ_MNESIA_BASE: join(home, 'mnesia'),
    RABBITMQ_LOG_BASE: join(home, 'log'),
    RABBITMQ_CONF_ENV_FILE: join(home, 'rabbitmq-env.conf'),
    RABBITMQ_CONFIG_FILE: join(home, 'rabbitmq'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(home, 'enabled_plugins'),
  }
  const log = join(home, 'output.log')
  const running = spawn('/bin/sh', ['-c', `exec >"${log}" 2>&1; ${keeper}`], {
    env,
    cwd: home,
    detached: true, // a signal to the tests must not reach it: it has its own way to end
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const ended = new Promise<void>((resolve) => running.once('exit', () => resolve()))
  const url = `amqp://guest:guest@127.0.0.1:${port}`
  const server: RabbitMqServer = {
    url,
    ctl: async (...args) => {
      const { stdout } = await promisify(execFile)(join(programs ?? '', 'rabbitmqctl'), ['--quiet', ...args], { env })
      return stdout
    },
    stop: async () => {
      running.stdin.end()
      await ended
    },
  }
  try {
    await vi.waitFor(async () => (await connect(url)).close(), { timeout: 90_000, interval: 250 })
  } catch (error) {
    const output = readFileSync(log, 'utf8')
    await server.stop()
    rmSync(home, { recursive: true, force: true })
    throw new Error(`RabbitMQ did not start. It says:\n${output}`, { cause: error })
  }
  return server
}
