import type pg from 'pg'
import { namespaceExists, namespaceNotEmpty, namespaceNotFound, type Namespace } from './catalog.ts'
import { namespaceText, query } from './jdbc-tables.ts'

// A namespace is there when a row of either relation names it or one inside it. An empty one is kept by a property.

const existsProperty = 'exists'

/** The namespaces of one catalog in a database. */
export class JdbcNamespaces {
  readonly #catalog: string
  readonly #pool: pg.Pool

  constructor(catalog: string, pool: pg.Pool) {
    this.#catalog = catalog
    this.#pool = pool
  }

  async list(parent: Namespace): Promise<Namespace[]> {
    const prefix = parent.length === 0 ? '' : `${namespaceText(parent)}.`
    const { rows } = await query<{ namespace: string }>(
      this.#pool,
      `select table_namespace as namespace from iceberg_tables where catalog_name = $1 and starts_with(table_namespace, $2)
       union
       select namespace from iceberg_namespace_properties where catalog_name = $1 and starts_with(namespace, $2)`,
      [this.#catalog, prefix],
    )
    if (rows.length === 0 && parent.length > 0) await this.assertExists(parent)
    const names = new Set(rows.map(({ namespace }) => namespace.slice(prefix.length).split('.')[0] ?? ''))
    return [...names]
      .filter((name) => name !== '')
      .toSorted()
      .map((name) => [...parent, name])
  }

  async create(namespace: Namespace, properties: Readonly<Record<string, string>>): Promise<void> {
    const text = namespaceText(namespace)
    if (await this.exists(namespace)) throw namespaceExists(this.#catalog, namespace)
    const entries = Object.entries({ ...properties, [existsProperty]: 'true' })
    try {
      await query(
        this.#pool,
        `insert into iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)
         select $1, $2, key, value from unnest($3::text[], $4::text[]) as p (key, value)`,
        [this.#catalog, text, entries.map(([key]) => key), entries.map(([, value]) => value)],
      )
    } catch (error) {
      if ((error as { code?: string }).code === '23505') throw namespaceExists(this.#catalog, namespace, error)
      throw error
    }
  }

  async properties(namespace: Namespace): Promise<Record<string, string>> {
    await this.assertExists(namespace)
    const { rows } = await query<{ property_key: string; property_value: string | null }>(
      this.#pool,
      `select property_key, property_value from iceberg_namespace_properties
        where catalog_name = $1 and namespace = $2 and property_key <> $3`,
      [this.#catalog, namespaceText(namespace), existsProperty],
    )
    return Object.fromEntries(rows.map((row) => [row.property_key, row.property_value ?? '']))
  }

  async drop(namespace: Namespace): Promise<void> {
    const text = namespaceText(namespace)
    // One statement, so that nothing can come between the look and the deed but a table that is just being created.
    const { rowCount } = await query(
      this.#pool,
      `delete from iceberg_namespace_properties
        where catalog_name = $1 and namespace = $2
          and not exists (select from iceberg_tables
                           where catalog_name = $1 and (table_namespace = $2 or starts_with(table_namespace, $2 || '.')))
          and not exists (select from iceberg_namespace_properties
                           where catalog_name = $1 and starts_with(namespace, $2 || '.'))`,
      [this.#catalog, text],
    )
    if (rowCount !== 0) return
    await this.assertExists(namespace)
    throw namespaceNotEmpty(this.#catalog, namespace)
  }

  async exists(namespace: Namespace): Promise<boolean> {
    const { rows } = await query<{ there: boolean }>(
      this.#pool,
      `select exists (select from iceberg_tables
                       where catalog_name = $1 and (table_namespace = $2 or starts_with(table_namespace, $2 || '.')))
           or exists (select from iceberg_namespace_properties
                       where catalog_name = $1 and (namespace = $2 or starts_with(namespace, $2 || '.'))) as there`,
      [this.#catalog, namespaceText(namespace)],
    )
    return rows[0]?.there === true
  }

  async assertExists(namespace: Namespace): Promise<void> {
    if (!(await this.exists(namespace))) throw namespaceNotFound(this.#catalog, namespace)
  }
}
