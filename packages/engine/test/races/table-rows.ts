import type { Bed } from '../bed.ts'

type Row = Record<string, unknown>
export type TableRows = Record<string, Row[]>

/** Every table that jobs are kept in, with an order of its rows that does not depend on the run. */
const tables = {
  live_jobs: 'job_id',
  finished_jobs: 'job_id',
  slots: 'slot_key',
  resource_locks: 'lock_key',
  stored_events: 'id',
  job_steps: 'id',
  settings: 'key',
}

/** Every row of every table: two of these are equal exactly when nothing was written in between. */
export async function tableRows(bed: Bed, without: { events?: readonly string[] } = {}): Promise<TableRows> {
  const columns = Object.entries(tables).map(
    ([table, order]) =>
      `(select coalesce(jsonb_agg(to_jsonb(r) order by r.${order}), '[]') from fencepost.${table} r) as ${table}`,
  )
  const [rows] = await bed.query<TableRows>(`select ${columns.join(', ')}`)
  if (rows === undefined) throw new Error('no rows')
  const hidden = without.events ?? []
  return { ...rows, stored_events: (rows.stored_events ?? []).filter(({ event }) => !hidden.includes(String(event))) }
}

/** Puts every table back to what it was. */
export async function restoreRows(bed: Bed, rows: TableRows): Promise<void> {
  const names = Object.keys(tables)
  await bed.query(`
    with ${names.map((table) => `without_${table} as (delete from fencepost.${table})`).join(', ')} select`)
  const inserted = names.map(
    (table) => `with_${table} as (
      insert into fencepost.${table} overriding system value
      select * from jsonb_populate_recordset(null::fencepost.${table}, $1::jsonb -> '${table}'))`,
  )
  await bed.query(`with ${inserted.join(', ')} select`, [JSON.stringify(rows)])
}

const uuid = /[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}/g
const time = /^\d{4}-\d\d-\d\d[T ]/
const eventIds = ['submitted_event_id', 'started_event_id', 'completed_event_id']

/** The same with what differs from run to run replaced by what it stands for: ids by their order, times by a word. */
export function comparable(rows: TableRows): TableRows {
  const names = new Map<string, string>()
  const nameOf = (id: string) => {
    const key = id.replaceAll('-', '')
    const name = names.get(key) ?? `id ${names.size + 1}`
    names.set(key, name)
    return name
  }
  const ranks = ranksOf(rows)
  const plain = (value: unknown): unknown => {
    if (typeof value === 'string') return time.test(value) ? 'a time' : value.replaceAll(uuid, nameOf)
    if (Array.isArray(value)) return value.map(plain)
    if (value === null || typeof value !== 'object') return value
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, plain(part)]))
  }
  const ranked = (table: string, row: Row): Row =>
    Object.fromEntries(
      Object.entries(row).map(([key, value]) => {
        if (key === 'id' && table === 'job_steps') return [key, null]
        return [key, key === 'id' || eventIds.includes(key) ? (ranks.get(Number(value)) ?? value) : value]
      }),
    )
  return Object.fromEntries(
    Object.entries(rows).map(([table, list]) => [table, list.map((row) => plain(ranked(table, row)) as Row)]),
  )
}

// A sequence leaves gaps where a transaction was rolled back; the order of its numbers is what means something.
function ranksOf(rows: TableRows): Map<number, string> {
  const jobs = [...(rows.live_jobs ?? []), ...(rows.finished_jobs ?? [])]
  const ids = [
    ...(rows.stored_events ?? []).map(({ id }) => Number(id)),
    ...jobs.flatMap((row) => eventIds.flatMap((key) => (row[key] == null ? [] : [Number(row[key])]))),
  ]
  return new Map(ids.sort((a, b) => a - b).map((id, nth) => [id, `event ${nth + 1}`]))
}
