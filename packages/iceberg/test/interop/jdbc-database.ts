import pg from 'pg'
import { inject } from 'vitest'

/** A new database for a JDBC catalog on the Postgres of the tests. It goes with that. */
export async function createDatabase(name: string): Promise<URL> {
  const { adminUrl, run } = inject('testServer')
  const admin = new pg.Client({ connectionString: adminUrl })
  await admin.connect()
  await admin.query(`create database ${run}_${name}`)
  await admin.end()
  const url = new URL(adminUrl)
  url.pathname = `/${run}_${name}`
  return url
}

/** The JDBC catalog on a database as each engine wants to be told of it. */
export function jdbcProperties(database: URL): Record<'spark' | 'pyiceberg', Record<string, string>> {
  return {
    spark: {
      type: 'jdbc',
      uri: `jdbc:postgresql://${database.host}${database.pathname}`,
      'jdbc.user': database.username,
      'jdbc.password': database.password,
      'jdbc.schema-version': 'V1',
    },
    pyiceberg: { type: 'sql', uri: database.href.replace(/^postgres(ql)?:/, 'postgresql+psycopg2:') },
  }
}
