import { randomBytes } from 'node:crypto'
import pg from 'pg'

// The databases of one test run have names that begin with the run: fencepost_test_<run>_…. As long as it goes on, the
// run holds a session with that name open, so the next run can tell what was left behind by one that was killed.

const prefix = 'fencepost_test_'

/** A test run on a server: its name, and the session that shows that it is going on. */
export interface Run {
  name: string
  session: pg.Client
}

/** Begins a run, and drops what runs that are over have left. */
export async function beginRun(url: string): Promise<Run> {
  const name = `${prefix}${randomBytes(4).toString('hex')}`
  const session = new pg.Client({ connectionString: url, application_name: name })
  session.on('error', () => {}) // the statement that is under way reports it
  await session.connect()
  await dropDatabases(
    session,
    `not exists (select from pg_stat_activity
                  where application_name = substring(pg_database.datname from '^${prefix}[0-9a-f]+'))`,
  )
  return { name, session }
}

/** Drops all databases of the run, whoever is connected to them. */
export async function endRun({ name, session }: Run): Promise<void> {
  await dropDatabases(session, `starts_with(datname, '${name}_')`)
  await session.end()
}

async function dropDatabases(session: pg.Client, condition: string): Promise<void> {
  const { rows } = await session.query<{ datname: string; datistemplate: boolean }>(
    `select datname, datistemplate from pg_database where starts_with(datname, '${prefix}') and ${condition}`,
  )
  for (const { datname, datistemplate } of rows) {
    // Another run may be clearing up the same.
    if (datistemplate) await session.query(`alter database ${datname} is_template false`).catch(() => {})
    await session.query(`drop database if exists ${datname} with (force)`)
  }
}
