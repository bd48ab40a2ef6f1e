import { schemaVersion } from '@fencepost/engine'
import type pg from 'pg'
import { migrations } from '../service/migrations.ts'
import { firstRow, type Check } from './check.ts'

// The schema, and what this user may do in it.

export const schemaCheck: Check = {
  name: 'schema',
  async examine({ session, schema }) {
    const { current, latest } = await schemaVersion(session as unknown as pg.ClientBase, { schema })
    const details = { current, latest }
    const outdated = await outdatedPackage(session as unknown as pg.ClientBase, schema)
    if (current === latest && outdated === undefined) {
      return { state: 'ok', message: `Schema ${schema} is at version ${current}, as this release wants it.`, details }
    }
    if (outdated !== undefined && current === latest) {
      const { package: name, ...version } = outdated
      const newer = version.current > version.latest
      return {
        state: 'fail',
        message: `The ${name} part of schema ${schema} is at version ${version.current}; this release works with ${version.latest}.`,
        advice: newer ? 'Update this program.' : 'Run `fencepost migrate`.',
        details: { package: name, ...version },
      }
    }
    if (current > latest) {
      return {
        state: 'fail',
        message: `Schema ${schema} is at version ${current}; this release knows versions up to ${latest}.`,
        advice: 'Update this program.',
        details,
      }
    }
    return {
      state: 'fail',
      message:
        current === 0
          ? `There is no schema ${schema} yet.`
          : `Schema ${schema} is at version ${current}; this release works with ${latest}.`,
      advice: 'Run `fencepost migrate`.',
      details,
    }
  },
}

async function outdatedPackage(session: pg.ClientBase, schema: string) {
  for (const set of migrations) {
    const version = await schemaVersion(session, { schema, set })
    if (version.current !== version.latest) return { package: set.package, ...version }
  }
  return undefined
}

export const permissionsCheck: Check = {
  name: 'permissions',
  async examine({ session, schema }) {
    const { role, known, usable, creatable } = await firstRow<{
      role: string
      known: boolean
      usable: boolean
      creatable: boolean
    }>(
      session,
      `select current_user as role, to_regnamespace(quote_ident($1)) is not null as known,
              coalesce(has_schema_privilege(to_regnamespace(quote_ident($1))::oid, 'usage'), false) as usable,
              coalesce(has_schema_privilege(to_regnamespace(quote_ident($1))::oid, 'create'),
                       has_database_privilege(current_database(), 'create')) as creatable`,
      [schema],
    )
    const details = { role, may_migrate: creatable }
    const migrating = creatable ? 'and may run migrations' : 'but may not run migrations'
    if (!known) {
      return creatable
        ? { state: 'ok', message: `${role} may make the schema.`, details }
        : {
            state: 'fail',
            message: `${role} may not make a schema.`,
            advice: `Run \`fencepost migrate\` as a user that may, or: grant create on database … to ${role}.`,
            details,
          }
    }
    const missing = usable ? await missingPrivileges(session, schema) : ['usage on the schema']
    if (missing.length === 0)
      return { state: 'ok', message: `${role} may do all that is needed, ${migrating}.`, details }
    return {
      state: 'fail',
      message: `${role} lacks ${missing.slice(0, 5).join(', ')}${missing.length > 5 ? ', …' : ''}.`,
      advice: `Grant them: grant usage on schema ${schema}, and select, insert, update, delete on all tables in it.`,
      details: { ...details, missing },
    }
  },
}

async function missingPrivileges(session: Parameters<Check['examine']>[0]['session'], schema: string) {
  const { rows } = await session.query<{ missing: string }>(
    `select privilege || ' on ' || relname as missing
       from pg_class,
            unnest(case relkind when 'S' then array['usage'] when 'v' then array['select']
                                else array['select', 'insert', 'update', 'delete'] end) as privilege
      where relnamespace = to_regnamespace(quote_ident($1)) and relkind in ('r', 'p', 'v', 'S')
        and (relname not in ('migrations', 'package_migrations') or privilege = 'select')
        and not case relkind when 'S' then has_sequence_privilege(oid, privilege)
                             else has_table_privilege(oid, privilege) end
      order by 1`,
    [schema],
  )
  return rows.map((row) => row.missing)
}
