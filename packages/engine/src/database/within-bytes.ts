import { sql, type Sql } from './sql.ts'

/** The rows to choose from, and how their size is counted. */
export interface Sized {
  /** Selects what `columns` names, and `stored_bytes`: the size as Postgres stores it, which is known without reading it. */
  rows: Sql
  columns: Sql
  /** The size as JSON, of a row of `rows`: reads the values. */
  writtenBytes: Sql
  order: Sql
  maxBytes: number
}

/**
 * The first rows in their order that take at most `maxBytes` together, and one at least; each with `listed`, how many there
 * were to choose from. Values are stored compressed, up to a hundred times smaller than they are: so the stored size only
 * chooses what is worth measuring.
 */
export function withinBytes({ rows, columns, writtenBytes, order, maxBytes }: Sized): Sql {
  return sql`
    with listed as materialized (${rows}),
    stored as materialized (
      select *, sum(stored_bytes) over (order by ${order}) as stored_sum from listed
    ),
    written as materialized (
      select *, ${writtenBytes} as written_bytes from stored where stored_sum - stored_bytes < ${maxBytes}::bigint
    ),
    summed as (
      select *, sum(written_bytes) over (order by ${order}) as written_sum from written
    )
    select ${columns}, (select count(*)::integer from listed) as listed
      from summed where written_sum <= ${maxBytes}::bigint or written_sum = written_bytes
     order by ${order}`
}
