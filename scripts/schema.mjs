// @ts-check
// The schema that the migrations build, as text: `node scripts/schema.mjs` writes packages/engine/schema.sql,
// `--check` compares. For people to read and for reviews to show what a migration changes; nothing runs it.
import { readFile, writeFile } from 'node:fs/promises'
import { migrate, openEmbeddedPostgres } from '@fencepost/engine'
import pg from 'pg'

const file = new URL('../packages/engine/schema.sql', import.meta.url)
const schema = 'fencepost'

const server = await openEmbeddedPostgres({ temporary: true, durable: false })
const pool = new pg.Pool({ connectionString: server.url })
pool.on('error', () => {}) // the server is stopped while the pool may still hold a connection
try {
  await migrate(pool, { schema })
  const text = await dump()
  if (process.argv.includes('--check')) {
    if ((await readFile(file, 'utf8').catch(() => '')) !== text) {
      console.error('packages/engine/schema.sql is not what the migrations build. Run: node scripts/schema.mjs')
      process.exitCode = 1
    }
  } else {
    await writeFile(file, text)
  }
} finally {
  await pool.end()
  await server.close()
}

async function dump() {
  const parts = [
    '-- The schema as the migrations build it. Made by scripts/schema.mjs; change a migration, not this file.',
    ...(await lines(`select pg_get_functiondef(oid) || ';' from pg_proc where pronamespace = $1::regnamespace
                      order by proname, pronargs`)),
    ...(await lines(`select format('sequence %s as %s', c.relname, format_type(s.seqtypid, null))
                       from pg_sequence s join pg_class c on c.oid = s.seqrelid
                      where c.relnamespace = $1::regnamespace order by c.relname`)),
    ...(await tables()),
    ...(await lines(`select format(E'view %s as\\n%s', relname, pg_get_viewdef(oid, true)) from pg_class
                      where relnamespace = $1::regnamespace and relkind = 'v' order by relname`)),
  ]
  return `${parts.map((part) => part.trimEnd()).join('\n\n')}\n`
}

async function tables() {
  const names = await lines(`select relname from pg_class where relnamespace = $1::regnamespace and relkind = 'r'
                              order by relname`)
  return Promise.all(names.map(table))
}

/** @param {string} name */
async function table(name) {
  const of = [schema, `${schema}.${name}`]
  const columns = await lines(
    `select format('  %s %s%s%s', attname, format_type(atttypid, atttypmod), case when attnotnull then ' not null' end,
                   ' default ' || pg_get_expr(d.adbin, d.adrelid))
       from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where attrelid = $2::regclass and attnum > 0 and not attisdropped and $1::text is not null order by attnum`,
    of,
  )
  const constraints = await lines(
    `select format('  constraint %s %s', conname, pg_get_constraintdef(oid, true)) from pg_constraint
      where conrelid = $2::regclass and contype <> 'n' and $1::text is not null order by conname`,
    of,
  )
  const indexes = await lines(
    `select indexdef || ';' from pg_indexes where schemaname = $1 and format('%s.%s', schemaname, tablename) = $2
      order by indexname`,
    of,
  )
  const [options] = await lines(
    `select coalesce(' with (' || array_to_string(reloptions, ', ') || ')', '') from pg_class
      where oid = $2::regclass and $1::text is not null`,
    of,
  )
  const triggers = await lines(
    `select pg_get_triggerdef(oid, true) || ';' from pg_trigger
      where tgrelid = $2::regclass and not tgisinternal and $1::text is not null order by tgname`,
    of,
  )
  const whole = `table ${name} (\n${[...columns, ...constraints].join(',\n')}\n)${options};`
  return [whole, ...indexes, ...triggers].join('\n')
}

/**
 * @param {string} statement
 * @param {unknown[]} values
 * @returns {Promise<string[]>}
 */
async function lines(statement, values = [schema]) {
  const { rows } = await pool.query({ text: statement, values, rowMode: 'array' })
  return rows.map(([text]) => text)
}
