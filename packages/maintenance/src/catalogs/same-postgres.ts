/** Whatever runs a statement. */
interface Queries {
  query(text: string): Promise<{ rows: unknown[] }>
}

// Not the address: one server has many. A copy of a server has its identifier too, but did not start at the same time.
const identity = `select concat_ws(' ', (select system_identifier from pg_control_system()), current_database(),
                                   extract(epoch from pg_postmaster_start_time())) as identity`

/** Returns what tells this database from every other one that can be reached; undefined when it may not be asked. */
export async function identityOf(client: Queries): Promise<string | undefined> {
  try {
    const { rows } = await client.query(identity)
    return (rows as { identity: string }[])[0]?.identity
  } catch {
    return undefined
  }
}
