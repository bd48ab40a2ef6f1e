import { firstRow, type Check, type Patient } from './check.ts'

// What keeps vacuum from removing dead rows: a queue makes many of them, and slows down as they pile up.

interface Holder {
  what: 'transaction' | 'prepared_transaction' | 'replication_slot'
  name: string
  pid: number | null
  age_seconds: number | null
  /** How many transactions old its snapshot is. */
  xmin_age: number
}

const advices: Record<Holder['what'], string> = {
  transaction: 'End it, or its session: select pg_terminate_backend(pid).',
  prepared_transaction: 'Finish it: commit prepared or rollback prepared.',
  replication_slot: 'Start its consumer again, or drop it: select pg_drop_replication_slot(name).',
}

export const xminCheck: Check = {
  name: 'xmin',
  async examine(patient) {
    const holders = await findHolders(patient)
    const { all } = await firstRow<{ all: boolean }>(
      patient.session,
      `select pg_has_role(current_user, 'pg_read_all_stats', 'usage') as all`,
    )
    const unseen = all ? '' : ' Sessions of other users cannot be seen.'
    const grant = all ? [] : ['To see them: grant pg_read_all_stats.']
    if (holders.length > 0) {
      const kinds = [...new Set(holders.map(({ what }) => what))]
      return {
        state: 'warn',
        message: `Vacuum is held back by ${holders.map(describe).join('; ')}.${unseen}`,
        advice: [...kinds.map((kind) => advices[kind]), ...grant].join(' '),
        details: { holders },
      }
    }
    const message = `Nothing holds vacuum back for ${patient.xminAgeSeconds} s.${unseen}`
    return { state: 'ok', message, ...(all ? {} : { advice: grant.join(' ') }), details: { holders } }
  },
}

async function findHolders({ session, xminAgeSeconds }: Patient): Promise<Holder[]> {
  const { rows } = await session.query<Holder & Record<string, unknown>>(
    `select 'transaction' as what,
            coalesce(nullif(application_name, ''), usename::text, backend_type) || ' (' || coalesce(state, '?') || ')'
              as name,
            pid, extract(epoch from clock_timestamp() - xact_start)::integer as age_seconds,
            greatest(age(backend_xmin), age(backend_xid)) as xmin_age
       from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and backend_type <> 'autovacuum worker'
        and (backend_xmin is not null or backend_xid is not null)
        and xact_start <= clock_timestamp() - $1 * interval '1 second'
     union all
     select 'prepared_transaction', gid, null, extract(epoch from clock_timestamp() - prepared)::integer,
            age(transaction)
       from pg_prepared_xacts
      where database = current_database() and prepared <= clock_timestamp() - $1 * interval '1 second'
     union all
     select 'replication_slot', slot_name, active_pid, null, age(xmin)
       from pg_replication_slots
      where xmin is not null and not active
     order by xmin_age desc`,
    [xminAgeSeconds],
  )
  return rows.map(({ what, name, pid, age_seconds, xmin_age }) => ({ what, name, pid, age_seconds, xmin_age }))
}

function describe({ what, name, pid, age_seconds: seconds, xmin_age: transactions }: Holder): string {
  const facts = [
    pid === null ? undefined : `pid ${pid}`,
    seconds === null ? undefined : `open for ${seconds} s`,
    `${transactions} transactions old`,
  ]
  return `${what.replace('_', ' ')} ${name}, ${facts.filter((fact) => fact !== undefined).join(', ')}`
}
