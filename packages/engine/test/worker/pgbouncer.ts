import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { vi } from 'vitest'
import { freePort } from '../free-ports.ts'

const program = ['/usr/sbin/pgbouncer', '/opt/homebrew/bin/pgbouncer'].find((path) => existsSync(path))

/** A pooler of a test's own, which lends its few connections to one transaction at a time. */
export interface PgBouncer {
  /** Of the same database, through the pooler. */
  url: string
  stop(): Promise<void>
}

/** Whether there is a PgBouncer here. Says loudly what is not tested if not; in CI it must be there. */
export function hasPgBouncer(): boolean {
  if (program !== undefined) return true
  const how = 'Install it with: apt-get install -y pgbouncer'
  if (process.env['CI'] !== undefined) throw new Error(`There is no pgbouncer on this machine. ${how}`)
  console.warn(`!! SKIPPED: there is no pgbouncer, so workers behind a transaction pooler are not tested. ${how}`)
  return false
}

export async function startPgBouncer(database: string, connections: number): Promise<PgBouncer> {
  const target = new URL(database)
  const home = mkdtempSync(join(tmpdir(), 'fencepost-pgbouncer-'))
  chmodSync(home, 0o755)
  const port = await freePort()
  const config = join(home, 'pgbouncer.ini')
  const { hostname, port: targetPort, username, password, pathname } = target
  writeFileSync(
    config,
    `[databases]
pooled = host=${hostname} port=${targetPort || 5432} dbname=${pathname.slice(1)} user=${username} password=${decodeURIComponent(password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${connections}
`,
  )
  chmodSync(config, 0o644)
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}
  const running = spawn(program ?? '', [config], { ...user, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  running.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const ended = new Promise<void>((resolve) => running.once('exit', () => resolve()))
  const url = `postgres://anybody@127.0.0.1:${port}/pooled`
  const pooler: PgBouncer = {
    url,
    stop: async () => {
      running.kill('SIGTERM')
      await ended
      rmSync(home, { recursive: true, force: true })
    },
  }
  try {
    await vi.waitFor(() => answers(url), { timeout: 10_000, interval: 50 })
  } catch (error) {
    await pooler.stop()
    throw new Error(`PgBouncer did not start. It says:\n${said}`, { cause: error })
  }
  return pooler
}

async function answers(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('select 1')
  await client.end()
}
