import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { commitTable, type Catalog, type LoadedTable, type TableIdentifier } from '../../src/index.ts'
import { buildAppend, chainOf, newTable } from './tables.ts'

export interface CatalogBed {
  catalog: Catalog
  /** What this kind of catalog cannot do, and refuses. */
  refuses?: readonly ('rename' | 'register' | 'namespace-properties' | 'percent')[]
}

/** What every catalog does alike. */
export function catalogConformance(name: string, open: () => Promise<CatalogBed>): void {
  const fresh = (): string => `n${randomBytes(5).toString('hex')}`

  async function bed(): Promise<CatalogBed & { table: TableIdentifier; namespace: string[] }> {
    const opened = await open()
    const namespace = [fresh()]
    await opened.catalog.createNamespace(namespace)
    return { ...opened, namespace, table: { namespace, name: 'events' } }
  }

  describe(`${name} as a catalog`, () => {
    test('namespaces are made, listed, and dropped when they are empty', async () => {
      const { catalog, namespace } = await bed()
      await expect(catalog.createNamespace(namespace)).rejects.toMatchObject({ code: 'namespace_exists' })
      const inner = [...namespace, 'inner']
      await catalog.createNamespace(inner)
      expect(await catalog.listNamespaces()).toContainEqual(namespace)
      expect(await catalog.listNamespaces()).not.toContainEqual(inner)
      expect(await catalog.listNamespaces(namespace)).toEqual([inner])
      expect(await catalog.listNamespaces(inner)).toEqual([])
      await catalog.dropNamespace(inner)
      expect(await catalog.listNamespaces(namespace)).toEqual([])
      await catalog.dropNamespace(namespace)
      expect(await catalog.listNamespaces()).not.toContainEqual(namespace)
      await expect(catalog.dropNamespace(namespace)).rejects.toMatchObject({ code: 'namespace_not_found' })
      await expect(catalog.listTables(namespace)).rejects.toMatchObject({ code: 'namespace_not_found' })
      await expect(catalog.listNamespaces([...namespace, 'x'])).rejects.toMatchObject({ code: 'namespace_not_found' })
      await expect(catalog.namespaceProperties(namespace)).rejects.toMatchObject({ code: 'namespace_not_found' })
    })

    test('a namespace whose name begins like another is another', async () => {
      const { catalog, namespace } = await bed()
      const longer = [`${namespace[0]}2`]
      await catalog.createNamespace(longer)
      await catalog.createNamespace([...longer, 'inner'])
      expect(await catalog.listNamespaces(namespace)).toEqual([])
      await catalog.dropNamespace(namespace)
      expect(await catalog.listNamespaces(longer)).toEqual([[...longer, 'inner']])
    })

    test('properties of a namespace are kept, or refused', async () => {
      const { catalog, refuses = [] } = await bed()
      const namespace = [fresh()]
      const made = catalog.createNamespace(namespace, { owner: 'me', 'a b': 'ü' })
      if (refuses.includes('namespace-properties')) {
        await expect(made).rejects.toMatchObject({ code: 'catalog_unsupported' })
      } else {
        await made
        expect(await catalog.namespaceProperties(namespace)).toMatchObject({ owner: 'me', 'a b': 'ü' })
      }
    })

    test('a table is created, listed, loaded and created only once', async () => {
      const { catalog, table, namespace } = await bed()
      await expect(catalog.loadTable(table)).rejects.toMatchObject({ code: 'table_not_found' })
      const created = await catalog.createTable(table, newTable)
      const loaded = await catalog.loadTable(table)
      expect(loaded.metadata.tableUuid).toBe(created.metadata.tableUuid)
      expect(loaded.metadata.properties['owner']).toBe('tests')
      expect(loaded.metadata.partitionSpecs[0]?.fields[0]?.name).toBe('day')
      expect(loaded.metadata.formatVersion).toBe(2)
      expect(await catalog.listTables(namespace)).toEqual([table])
      await expect(catalog.createTable(table, newTable)).rejects.toMatchObject({ code: 'table_exists' })
      await expect(catalog.dropNamespace(namespace)).rejects.toMatchObject({ code: 'namespace_not_empty' })
      expect((await catalog.loadTable(table)).metadata.tableUuid).toBe(created.metadata.tableUuid)
    })

    test('a table in a namespace that is not there is refused', async () => {
      const { catalog } = await bed()
      const nowhere = { namespace: [fresh()], name: 't' }
      await expect(catalog.createTable(nowhere, newTable)).rejects.toMatchObject({ code: 'namespace_not_found' })
      await expect(catalog.loadTable(nowhere)).rejects.toMatchObject({
        code: expect.stringMatching(/^(table|namespace)_not_found$/),
      })
    })

    test('versions 1 and 3 are created as such', async () => {
      const { catalog, namespace } = await bed()
      for (const formatVersion of [1, 3] as const) {
        const identifier = { namespace, name: `v${formatVersion}` }
        await catalog.createTable(identifier, { ...newTable, formatVersion })
        expect((await catalog.loadTable(identifier)).metadata.formatVersion).toBe(formatVersion)
      }
    })

    test('names that are awkward in paths and addresses are kept as they are', async () => {
      const { catalog, namespace, refuses = [] } = await bed()
      const names = [
        'with space',
        'naïve',
        '日本',
        'a+b',
        "o'hara",
        'a.b',
        ...(refuses.includes('percent') ? [] : ['a%20b']),
      ]
      for (const n of names) await catalog.createTable({ namespace, name: n }, newTable)
      expect((await catalog.listTables(namespace)).map((t) => t.name).toSorted()).toEqual(names.toSorted())
      for (const n of names) expect((await catalog.loadTable({ namespace, name: n })).metadata.snapshots).toEqual([])
    })

    test('a commit is applied, to the table as it was loaded', async () => {
      const { catalog, table } = await bed()
      const created = await catalog.createTable(table, newTable)
      const built = await buildAppend(created)
      const result = await catalog.commit(created, built)
      expect(result).toMatchObject({ outcome: 'applied', table: { metadata: { currentSnapshotId: built.snapshotId } } })
      const loaded = await catalog.loadTable(table)
      expect(loaded.metadata.currentSnapshotId).toBe(built.snapshotId)
      expect(loaded.metadata.lastSequenceNumber).toBe(1n)
      expect(loaded.metadata.metadataLog).toHaveLength(1)
      expect(loaded.metadataLocation).not.toBe(created.metadataLocation)
    })

    test('the second of two commits on the same state is a conflict, and changes nothing', async () => {
      const { catalog, table } = await bed()
      const created = await catalog.createTable(table, newTable)
      const [first, second] = [await buildAppend(created), await buildAppend(created)]
      expect((await catalog.commit(created, first)).outcome).toBe('applied')
      expect(await catalog.commit(created, second)).toMatchObject({
        outcome: 'not_applied',
        why: 'conflict',
        error: { code: 'commit_conflict' },
      })
      expect(chainOf(await catalog.loadTable(table))).toEqual([first.snapshotId])
    })

    test('a requirement that does not hold is a conflict', async () => {
      const { catalog, table } = await bed()
      const created = await catalog.createTable(table, newTable)
      const { updates } = await buildAppend(created)
      const requirements = [{ type: 'assert-table-uuid', uuid: '00000000-0000-4000-8000-000000000000' }] as const
      expect(await catalog.commit(created, { updates, requirements })).toMatchObject({ why: 'conflict' })
      expect((await catalog.loadTable(table)).metadata.snapshots).toEqual([])
    })

    test('a guard that refuses leaves the table as it is', async () => {
      const { catalog, table } = await bed()
      const created = await catalog.createTable(table, newTable)
      const built = await buildAppend(created)
      const guard = async (): Promise<void> => {
        throw new Error('the fence is lost')
      }
      expect(await catalog.commit(created, { ...built, guard })).toMatchObject({
        outcome: 'not_applied',
        why: 'refused',
        error: { code: 'commit_refused', message: expect.stringContaining('the fence is lost') },
      })
      expect((await catalog.loadTable(table)).metadataLocation).toBe(created.metadataLocation)
      expect((await catalog.commit(created, { ...built, guard: async () => {} })).outcome).toBe('applied')
    })

    test('a commit to a table that is gone is not applied', async () => {
      const { catalog, table } = await bed()
      const created = await catalog.createTable(table, newTable)
      const built = await buildAppend(created)
      await catalog.dropTable(table, { purge: true }).catch(() => catalog.dropTable(table))
      expect(await catalog.commit(created, built)).toMatchObject({ outcome: 'not_applied' })
      await expect(catalog.loadTable(table)).rejects.toMatchObject({ code: 'table_not_found' })
      await expect(
        catalog.dropTable(table, { purge: true }).catch(() => catalog.dropTable(table)),
      ).rejects.toBeDefined()
    })

    test('64-bit ids, properties and refs come back as they were committed', async () => {
      const { catalog, table } = await bed()
      let loaded: LoadedTable = await catalog.createTable(table, newTable)
      const built = await buildAppend(loaded)
      const result = await catalog.commit(loaded, {
        ...built,
        updates: [
          ...built.updates,
          { action: 'set-properties', updates: { 'a.b': '1', ключ: 'значение' } },
          {
            action: 'set-snapshot-ref',
            refName: 'kept',
            ref: { snapshotId: built.snapshotId, type: 'tag', maxRefAgeMs: 9007199254740993n },
          },
        ],
      })
      expect(result.outcome).toBe('applied')
      loaded = await catalog.loadTable(table)
      expect(loaded.metadata.properties).toMatchObject({ 'a.b': '1', ключ: 'значение' })
      expect(loaded.metadata.refs.get('kept')).toMatchObject({
        snapshotId: built.snapshotId,
        maxRefAgeMs: 9007199254740993n,
      })
    })

    test('what is known and unchanged is not loaded again', async () => {
      const { catalog, table } = await bed()
      const created = await catalog.createTable(table, newTable)
      const known = await catalog.loadTable(table)
      const again = await catalog.loadTable(table, { known })
      expect(again.metadata).toEqual(known.metadata)
      expect((await catalog.commit(created, await buildAppend(created))).outcome).toBe('applied')
      expect((await catalog.loadTable(table, { known })).metadata.snapshots).toHaveLength(1)
    })

    test('a table is renamed, also to another namespace, and never onto another', async () => {
      const { catalog, table, refuses = [] } = await bed()
      const created = await catalog.createTable(table, newTable)
      const other = { namespace: [fresh()], name: 'moved' }
      await catalog.createNamespace(other.namespace)
      if (refuses.includes('rename')) {
        await expect(catalog.renameTable(table, other)).rejects.toMatchObject({ code: 'catalog_unsupported' })
        return
      }
      await catalog.renameTable(table, other)
      expect((await catalog.loadTable(other)).metadata.tableUuid).toBe(created.metadata.tableUuid)
      await expect(catalog.loadTable(table)).rejects.toMatchObject({ code: 'table_not_found' })
      await expect(catalog.renameTable(table, other)).rejects.toMatchObject({
        code: expect.stringMatching(/^table_(not_found|exists)$/),
      })
      await catalog.createTable(table, newTable)
      await expect(catalog.renameTable(table, other)).rejects.toMatchObject({ code: 'table_exists' })
      await expect(catalog.renameTable(table, { namespace: [fresh()], name: 'x' })).rejects.toMatchObject({
        code: 'namespace_not_found',
      })
    })

    test('a metadata file is registered as a table, and a dropped table can come back so', async () => {
      const { catalog, table, refuses = [] } = await bed()
      const created = await catalog.createTable(table, newTable)
      const location = created.metadataLocation ?? ''
      if (refuses.includes('register')) {
        await expect(catalog.registerTable(table, location)).rejects.toMatchObject({ code: 'catalog_unsupported' })
        return
      }
      await expect(catalog.registerTable(table, location)).rejects.toMatchObject({ code: 'table_exists' })
      await catalog.dropTable(table)
      const registered = await catalog.registerTable(table, location)
      expect(registered.metadata.tableUuid).toBe(created.metadata.tableUuid)
      expect((await catalog.commit(registered, await buildAppend(registered))).outcome).toBe('applied')
    })

    test('committers at the same time lose nothing', async () => {
      const { catalog, table } = await bed()
      await catalog.createTable(table, {
        ...newTable,
        properties: { ...newTable.properties, 'commit.retry.num-retries': '100', 'commit.retry.max-wait-ms': '50' },
      })
      const applied: bigint[] = []
      const committer = async (): Promise<void> => {
        for (let n = 0; n < 5; n++) {
          let last = 0n
          const outcome = await commitTable(catalog, table, async (t) => {
            const built = await buildAppend(t)
            last = built.snapshotId
            return built
          })
          expect(outcome).toMatchObject({ outcome: 'applied' })
          applied.push(last)
        }
      }
      await Promise.all(Array.from({ length: 4 }, committer))
      const chain = chainOf(await catalog.loadTable(table))
      expect(new Set(chain)).toEqual(new Set(applied))
      expect(chain).toHaveLength(20)
    })
  })
}
