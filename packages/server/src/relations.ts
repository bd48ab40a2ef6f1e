import { relationOf, type PackageDb, type Sql } from '@fencepost/engine'

export interface ServerRelations {
  readonly tokens: Sql
  readonly idempotencyKeys: Sql
  readonly now: Sql
}

const known = new Map<string, ServerRelations>()

/** The relations that the server's migrations make, ready to be spliced into statements. */
export function relationsOf({ t }: PackageDb): ServerRelations {
  const made = known.get(t.schema) ?? {
    tokens: relationOf(t.schema, 'tokens'),
    idempotencyKeys: relationOf(t.schema, 'idempotency_keys'),
    now: t.now,
  }
  known.set(t.schema, made)
  return made
}
