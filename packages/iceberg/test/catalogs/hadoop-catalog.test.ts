import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HadoopCatalog, LocalStorage, serializeTableMetadata, type TableIdentifier } from '../../src/index.ts'
import { catalogConformance } from './conformance.ts'
import { buildAppend, newTable } from './tables.ts'

let root: string
let count = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'fencepost-hadoop-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))

const open = (prefix = ''): HadoopCatalog =>
  new HadoopCatalog({ name: 'files', warehouse: `${prefix}${root}/w${(count += 1)}` })
const table: TableIdentifier = { namespace: ['db'], name: 't' }

catalogConformance('A folder', async () => ({
  catalog: open(),
  refuses: ['rename', 'register', 'namespace-properties'],
}))
catalogConformance('A folder as file://', async () => ({
  catalog: open('file://'),
  refuses: ['rename', 'register', 'namespace-properties'],
}))

describe('tables in folders', () => {
  async function opened() {
    const catalog = open()
    await catalog.createNamespace(['db'])
    const created = await catalog.createTable(table, newTable)
    return { catalog, created, folder: `${created.metadata.location}/metadata` }
  }

  test('versions are counted, and the hint names the last', async () => {
    const { catalog, created, folder } = await opened()
    await catalog.commit(created, await buildAppend(created))
    const names = (await readdir(folder)).filter((n) => !n.startsWith('snap-'))
    expect(names.toSorted()).toEqual(['v1.metadata.json', 'v2.metadata.json', 'version-hint.text'])
    expect(await readFile(`${folder}/version-hint.text`, 'utf8')).toBe('2')
  })

  test.each([
    ['missing', undefined],
    ['old', '1'],
    ['damaged', 'two?'],
    ['ahead of the versions', '7'],
    ['empty', ''],
  ])('a hint that is %s does not hide the current version', async (_what, hint) => {
    const { catalog, created, folder } = await opened()
    let loaded = created
    for (let n = 0; n < 3; n++) {
      const result = await catalog.commit(loaded, await buildAppend(loaded))
      loaded = result.outcome === 'applied' ? result.table : loaded
    }
    if (hint === undefined) await rm(`${folder}/version-hint.text`)
    else await writeFile(`${folder}/version-hint.text`, hint)
    expect((await catalog.loadTable(table)).metadata.snapshots).toHaveLength(3)
  })

  test('what a killed writer leaves is never taken for a version, and goes with the table', async () => {
    const { catalog, created, folder } = await opened()
    for (const name of ['v2.metadata.json', 'version-hint.text']) await leaveHalf(`${folder}/${name}`)
    await rm(`${folder}/version-hint.text`)
    const loaded = await catalog.loadTable(table)
    expect(loaded.metadataLocation).toBe(created.metadataLocation)
    expect((await catalog.commit(loaded, await buildAppend(loaded))).outcome).toBe('applied')
    expect((await catalog.loadTable(table)).metadata.snapshots).toHaveLength(1)
    const left = (await readdir(folder)).filter((name) => name.endsWith('.tmp'))
    expect(left).toHaveLength(2)
    for (const name of left) expect(name).toMatch(/^\..*\.[-0-9a-f]{36}\.tmp$/)
    await writeFile(`${folder}/v1.metadata.json.bak`, 'not a version either')
    await catalog.dropTable(table, { purge: true })
    expect(await readdir(dirname(dirname(folder)))).toEqual([])
  })

  /** A write that stops half-way, and a copy of what it had on disk then: what a kill at that moment leaves. */
  async function leaveHalf(location: string): Promise<void> {
    async function* half(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('{"format-version"')
      const inFolder = await readdir(dirname(location))
      const temporary = inFolder.find((name) => name.includes(basename(location)) && name.endsWith('.tmp')) ?? ''
      await copyFile(
        join(dirname(location), temporary),
        join(dirname(location), temporary.replace(/[0-9a-f]{8}-/, '00000000-')),
      )
      throw new Error('killed')
    }
    await expect(new LocalStorage().write(location, half())).rejects.toThrow('killed')
  }

  test('a version that is there is never overwritten', async () => {
    const { catalog, created, folder } = await opened()
    await writeFile(
      `${folder}/v2.metadata.json`,
      serializeTableMetadata({ ...created.metadata, properties: { of: 'others' } }, 'v2.metadata.json'),
    )
    expect(await catalog.commit(created, await buildAppend(created))).toMatchObject({
      outcome: 'not_applied',
      why: 'conflict',
    })
    expect((await catalog.loadTable(table)).metadata.properties).toEqual({ of: 'others' })
  })

  test('a version that exists because the storage repeated our write is ours', async () => {
    const { catalog, created, folder } = await opened()
    const inner = new LocalStorage()
    const repeating = new Proxy(inner, {
      get(target, key) {
        const value = Reflect.get(target, key) as unknown
        if (typeof value !== 'function') return value
        if (key !== 'write') return value.bind(target) as unknown
        return async (...args: Parameters<LocalStorage['write']>) => {
          await target.write(...args)
          if (args[2]?.exclusive === true) await target.write(...args)
        }
      },
    })
    const warehouse = dirname(dirname(dirname(folder)))
    const behind = new HadoopCatalog({ name: 'files', warehouse, storage: repeating })
    expect((await behind.commit(created, await buildAppend(created))).outcome).toBe('applied')
    expect((await catalog.loadTable(table)).metadata.snapshots).toHaveLength(1)
  })

  test('compressed metadata of others is read, and goes on compressed', async () => {
    const { catalog, created, folder } = await opened()
    await rm(`${folder}/v1.metadata.json`)
    const name = `${folder}/v1.gz.metadata.json`
    await writeFile(name, serializeTableMetadata(created.metadata, name))
    const loaded = await catalog.loadTable(table)
    expect((await catalog.commit(loaded, await buildAppend(loaded))).outcome).toBe('applied')
    expect([...(await readFile(`${folder}/v2.gz.metadata.json`)).subarray(0, 2)]).toEqual([0x1f, 0x8b])
    expect((await catalog.loadTable(table)).metadata.snapshots).toHaveLength(1)
  })

  test('what a table in folders cannot have is refused', async () => {
    const { catalog, created } = await opened()
    for (const updates of [{ 'write.metadata.path': '/elsewhere' }, { 'write.metadata.compression-codec': 'gzip' }]) {
      const request = { requirements: [], updates: [{ action: 'set-properties', updates } as const] }
      expect(await catalog.commit(created, request)).toMatchObject({ outcome: 'not_applied', why: 'rejected' })
    }
    const moved = { requirements: [], updates: [{ action: 'set-location', location: '/elsewhere' } as const] }
    expect(await catalog.commit(created, moved)).toMatchObject({ outcome: 'not_applied', why: 'rejected' })
    await expect(catalog.dropTable(table)).rejects.toMatchObject({ code: 'catalog_unsupported' })
    for (const name of ['', '.', '..', 'a/b', 'metadata']) {
      await expect(catalog.createTable({ namespace: ['db'], name }, newTable)).rejects.toMatchObject({
        code: 'name_invalid',
      })
    }
  })

  test('old metadata is deleted after a commit when the table says so', async () => {
    const { catalog, created, folder } = await opened()
    const updates = {
      'write.metadata.delete-after-commit.enabled': 'true',
      'write.metadata.previous-versions-max': '2',
    }
    let result = await catalog.commit(created, { requirements: [], updates: [{ action: 'set-properties', updates }] })
    for (let n = 0; n < 4 && result.outcome === 'applied'; n++) {
      result = await catalog.commit(result.table, await buildAppend(result.table))
    }
    const versions = (await readdir(folder)).filter((n) => n.startsWith('v') && n.endsWith('.metadata.json'))
    expect(versions.toSorted()).toEqual(['v4.metadata.json', 'v5.metadata.json', 'v6.metadata.json'])
    // One that is based on a version that is gone has lost, though the name after it is free again.
    expect(await catalog.commit(created, await buildAppend(created))).toMatchObject({ why: 'conflict' })
  })

  test('on an object store it only reads, unless writing is asked for', async () => {
    const catalog = new HadoopCatalog({
      name: 'remote',
      warehouse: 's3://bucket/warehouse',
      storage: new LocalStorage(),
    })
    await expect(catalog.createNamespace(['db'])).rejects.toMatchObject({ code: 'catalog_unsupported' })
    await expect(catalog.createTable(table, newTable)).rejects.toMatchObject({ code: 'catalog_unsupported' })
  })
})
