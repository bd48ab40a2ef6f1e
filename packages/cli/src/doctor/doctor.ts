import pg from 'pg'
import type { Exit } from '../exit-codes.ts'
import { failureOf } from '../failure.ts'
import type { Output, Style } from '../output/output.ts'
import { openDatabase, type OpenedDatabase } from '../service/database.ts'
import type { DatabaseSettings } from '../service/settings.ts'
import { worst, type Check, type Finding, type Patient, type State } from './check.ts'
import { permissionsCheck, schemaCheck } from './schema-checks.ts'
import { autovacuumCheck, clockCheck, connectionsCheck, durabilityCheck, versionCheck } from './server-checks.ts'
import { listenCheck, sessionCheck } from './session-checks.ts'
import { xminCheck } from './xmin-check.ts'

const checks: readonly Check[] = [
  versionCheck,
  schemaCheck,
  permissionsCheck,
  clockCheck,
  sessionCheck,
  listenCheck,
  xminCheck,
  durabilityCheck,
  connectionsCheck,
  autovacuumCheck,
]

/** A finding with the name of its check, as it is shown. */
type Named = Finding & { check: string }

/** Examines the database, and ends with the worst that was found. */
export async function doctor(
  { xminAgeSeconds }: { xminAgeSeconds: number },
  settings: DatabaseSettings,
  output: Output,
): Promise<Exit> {
  const findings = await examine(settings, xminAgeSeconds, output)
  const state = worst(findings.map((finding) => finding.state))
  const checks = findings.map(({ advice = null, details = {}, ...finding }) => ({ ...finding, advice, details }))
  output.answer({ state, checks }, () => findings.map((finding) => describe(finding, output)).join('\n'))
  return exits[state]
}

const exits: Record<State, Exit> = { ok: 'ok', warn: 'warnings', fail: 'failed' }

async function examine(settings: DatabaseSettings, xminAgeSeconds: number, output: Output): Promise<Named[]> {
  let database: OpenedDatabase
  let session: pg.Client
  try {
    database = await openDatabase(settings, output)
  } catch (error) {
    return [unreachable(error)]
  }
  const connect = () => openSession(database.url)
  try {
    const startedAt = performance.now()
    session = await connect()
    const ms = Math.round(performance.now() - startedAt)
    const reached: Named = {
      check: 'database',
      state: 'ok',
      message: `${database.name} answers after ${ms} ms.`,
      details: { ms },
    }
    const patient: Patient = { schema: settings.schema, xminAgeSeconds, session, connect }
    const findings = [reached]
    for (const check of checks) findings.push(await named(check, patient))
    await session.end()
    return findings
  } catch (error) {
    return [unreachable(error)]
  } finally {
    await database.close()
  }
}

async function named(check: Check, patient: Patient): Promise<Named> {
  try {
    return { check: check.name, ...(await check.examine(patient)) }
  } catch (error) {
    return { check: check.name, state: 'fail', message: `It could not be examined: ${failureOf(error).message}.` }
  }
}

async function openSession(url: string): Promise<pg.Client> {
  const session = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 10_000,
    application_name: 'fencepost doctor',
  })
  session.on('error', () => {}) // the statement that is under way reports it
  await session.connect()
  return session
}

function unreachable(error: unknown): Named {
  const { message } = failureOf(error)
  return {
    check: 'database',
    state: 'fail',
    message: `The database cannot be reached: ${message}.`,
    advice: 'Look at --database (`fencepost config` says where it comes from), and at the server and the way to it.',
  }
}

const stateStyles: Record<State, Style> = { ok: 'green', warn: 'yellow', fail: 'red' }

function describe({ check, state, message, advice }: Named, output: Output): string {
  const line = `${output.style(stateStyles[state], state.padEnd(4))}  ${check.padEnd(11)}  ${message}`
  return advice === undefined ? line : `${line}\n${' '.repeat(19)}${advice}`
}
