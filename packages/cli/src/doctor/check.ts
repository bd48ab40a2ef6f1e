import type { QueryResult, QueryResultRow } from 'pg'

/** One connection to the database. */
export interface Session {
  query<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<Pick<QueryResult<Row>, 'rows'>>
  on(event: 'notification', listener: (message: { channel: string }) => void): unknown
  end(): Promise<void>
}

/** What a check looks at. */
export interface Patient {
  schema: string
  /** Transactions that are open for longer hold back vacuum enough to be named. */
  xminAgeSeconds: number
  session: Session
  connect: () => Promise<Session>
}

export type State = 'ok' | 'warn' | 'fail'

/** What a check came to. */
export interface Finding {
  state: State
  message: string
  /** What to do about it. */
  advice?: string
  details?: Record<string, unknown>
}

/** Something that can be wrong. */
export interface Check {
  name: string
  examine(patient: Patient): Promise<Finding>
}

export function worst(states: readonly State[]): State {
  if (states.includes('fail')) return 'fail'
  return states.includes('warn') ? 'warn' : 'ok'
}

/** The first row; a query that always has one answers so. */
export async function firstRow<Row extends QueryResultRow>(
  session: Session,
  text: string,
  values: unknown[] = [],
): Promise<Row> {
  const { rows } = await session.query<Row>(text, values)
  if (rows[0] === undefined) throw new Error(`no answer to: ${text}`)
  return rows[0]
}
