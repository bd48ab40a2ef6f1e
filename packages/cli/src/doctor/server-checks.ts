import { firstRow, type Check } from './check.ts'

// What the server itself is like.

const oldestServer = 14
const toleratedSkewMs = 1_000
const busyPart = 0.8

export const versionCheck: Check = {
  name: 'version',
  async examine({ session }) {
    const { version, number } = await firstRow<{ version: string; number: number }>(
      session,
      `select current_setting('server_version') as version, current_setting('server_version_num')::integer as number`,
    )
    const details = { version }
    if (number >= oldestServer * 10_000) return { state: 'ok', message: `Postgres ${version}.`, details }
    return {
      state: 'fail',
      message: `Postgres ${version} is too old.`,
      advice: `Upgrade it: version ${oldestServer} or later is needed.`,
      details,
    }
  },
}

export const clockCheck: Check = {
  name: 'clock',
  async examine({ session }) {
    const before = Date.now()
    const { ms } = await firstRow<{ ms: string }>(
      session,
      `select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms`,
    )
    const after = Date.now()
    const skewMs = Math.round(Number(ms) - (before + after) / 2)
    const details = { skew_ms: skewMs }
    if (Math.abs(skewMs) <= toleratedSkewMs + (after - before) / 2) {
      return { state: 'ok', message: `The clocks differ by ${Math.abs(skewMs)} ms.`, details }
    }
    return {
      state: 'warn',
      message: `The clock of Postgres is ${Math.abs(skewMs)} ms ${skewMs > 0 ? 'ahead of' : 'behind'} this machine's.`,
      advice: 'Jobs go by the clock of Postgres alone, but logs of the two cannot be compared. Synchronise the clocks.',
      details,
    }
  },
}

export const durabilityCheck: Check = {
  name: 'durability',
  async examine({ session }) {
    const found = await firstRow<Record<string, string>>(
      session,
      `select current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit,
              current_setting('full_page_writes') as full_page_writes`,
    )
    const off = Object.entries(found)
      .filter(([, value]) => value === 'off')
      .map(([name]) => name)
    if (off.length === 0) return { state: 'ok', message: 'What is committed survives a crash.', details: found }
    return {
      state: 'warn',
      message: `${off.join(', ')} ${off.length === 1 ? 'is' : 'are'} off: jobs that were accepted can be lost in a crash.`,
      advice: 'Turn it on again, unless losing jobs does not matter here.',
      details: found,
    }
  },
}

export const connectionsCheck: Check = {
  name: 'connections',
  async examine({ session }) {
    const { used, most } = await firstRow<{ used: number; most: number }>(
      session,
      `select count(*)::integer as used,
              current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
                as most
         from pg_stat_activity where backend_type = 'client backend'`,
    )
    const details = { used, most }
    const message = `${used} of ${most} connections are in use.`
    if (used < busyPart * most) return { state: 'ok', message, details }
    return {
      state: 'warn',
      message,
      advice: 'Raise max_connections, or lower maxConnections of servers and workers.',
      details,
    }
  },
}

export const autovacuumCheck: Check = {
  name: 'autovacuum',
  async examine({ session }) {
    const { autovacuum, counts } = await firstRow<{ autovacuum: string; counts: string }>(
      session,
      `select current_setting('autovacuum') as autovacuum, current_setting('track_counts') as counts`,
    )
    if (autovacuum === 'on' && counts === 'on') return { state: 'ok', message: 'Autovacuum is on.' }
    return {
      state: 'warn',
      message: 'Autovacuum is off: a busy queue becomes slower every hour.',
      advice: 'Turn autovacuum and track_counts on.',
    }
  },
}
