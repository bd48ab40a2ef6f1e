import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildFolder } from '../../../packages/engine/test/build-folder.ts'
import { data } from '../src/sequences/data.ts'
import { Workers } from '../src/workers.ts'
import { annotationBed } from './bed.ts'
import { embedByHand } from './by-hand.ts'

const bed = annotationBed()
const model = { k: 2, dimensions: 64 }
const expected = embedByHand(data.sample, model.k, model.dimensions).map(({ accession }) => accession)

/** The accessions of all stored embeddings of a dataset: each as often as it is there. */
const storedIn = async (dataset: string) => {
  const { rows } = await bed.pool.query<{ accession: string }>(
    'select accession from annotation.embeddings where dataset = $1 order by accession',
    [dataset],
  )
  return rows.map(({ accession }) => accession)
}

test('batches and writes that fail at first are retried, and store every embedding once', async () => {
  const stop = bed.work(8)
  await bed.readSample('flaky')
  const simulate = { device_errors: true, write_errors: true }
  const jobId = await bed.submit(bed.operations.computeEmbeddings, { dataset: 'flaky', model, simulate })
  await bed.until(jobId, { status: 'completed', children: { total: 23, completed: 23, failed: 0 } })
  expect(await storedIn('flaky')).toEqual(expected)
  const twice = async (operation: string) =>
    (await bed.descendants(jobId, operation))
      .filter(({ attempts }) => attempts === 2)
      .map(({ payload }) => (payload as { batch: number }).batch)
      .sort((a, b) => a - b)
  expect(await twice('embed_batch')).toEqual([3, 6, 9, 12, 15, 18, 21])
  expect(await twice('store_embeddings')).toEqual([2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22])
  const events = await bed.engine.events(jobId, { descendants: true, limit: 10_000 })
  const retried = events.filter(({ event }) => event === 'job.retried').map(({ message }) => message ?? '')
  expect([...new Set(retried)].sort()).toEqual([
    'the connection was reset before the commit',
    'the device is out of memory',
  ])
  await stop()
}, 60_000)

test('a page that an earlier attempt has finished is not written again', async () => {
  const payload = { dataset: 'resumed', file: data.damaged, page_size: 20 }
  const jobId = await bed.submit(bed.operations.insertProteins, payload)
  const claim = async () => {
    const answer = await bed.engine.claimJob(jobId)
    if (!answer.claimed) throw new Error('not claimed')
    return answer.attempt
  }
  const first = await claim()
  await first.recordStep({ step: 'page 2', success: true, result: { proteins: 20 } })
  await bed.engine.release(first, 'its worker goes away')
  await bed.engine.run(await claim())
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'completed', result: { pages: 3, proteins: 60 } })
  const { rows } = await bed.pool.query<{ accession: string }>(
    `select accession from annotation.proteins where dataset = 'resumed' order by accession`,
  )
  const written = rows.map(({ accession }) => Number(accession.slice(2)))
  expect(written).toEqual(Array.from({ length: 60 }, (_, nth) => nth + 1).filter((nth) => nth <= 20 || nth > 40))
})

describe('a worker process that is killed', () => {
  let workers: Workers
  beforeAll(async () => {
    await buildFolder('examples/protein-annotation')
    workers = new Workers(bed.url, fileURLToPath(new URL('../dist/worker.js', import.meta.url)))
  }, 120_000)
  afterAll(() => workers.stop())

  test('in the middle of a write leaves every embedding stored once', async () => {
    workers.start()
    await bed.readSample('killed')
    const simulate = { device_ms: 100, write_ms: 1_000 }
    const payload = { dataset: 'killed', model, batch_size: 64, simulate }
    const jobId = await bed.submit(bed.operations.computeEmbeddings, payload)
    const writing = async () =>
      (await bed.descendants(jobId, 'store_embeddings')).filter(({ status }) => status === 'running')
    // Its rows are inserted, and not yet committed.
    const inserted = async () => {
      const { rows } = await bed.pool.query(
        `select from pg_stat_activity where datname = current_database() and state = 'idle in transaction'
            and query like '%insert into annotation.embeddings%'`,
      )
      return rows.length
    }
    await expect.poll(inserted, { timeout: 30_000, interval: 10 }).toBeGreaterThan(0)
    const hit = await writing()
    await workers.kill(workers.pids[0] ?? 0)
    expect(hit.length).toBeGreaterThan(0)
    workers.start()
    await bed.until(jobId, { status: 'completed', children: { total: 7, completed: 7, failed: 0 } })
    expect(await storedIn('killed')).toEqual(expected)
    const events = await bed.engine.events(jobId, { descendants: true, limit: 10_000 })
    const expired = events.filter(({ event }) => event === 'job.expired')
    expect(expired.length).toBeGreaterThan(0)
    const written = (await bed.descendants(jobId, 'store_embeddings')).filter(({ attempts }) => attempts === 2)
    expect(written.length).toBeGreaterThan(0)
  }, 120_000)

  test('again and again costs time, and no embedding', async () => {
    await bed.readSample('battered')
    const payload = { dataset: 'battered', model, simulate: { device_ms: 150, write_ms: 50 } }
    const jobId = await bed.submit(bed.operations.computeEmbeddings, payload)
    for (const enough of [1, 6]) {
      await expect
        .poll(async () => (await bed.engine.get(jobId))?.children?.completed, { timeout: 40_000, interval: 20 })
        .toBeGreaterThanOrEqual(enough)
      for (const pid of workers.pids) await workers.kill(pid)
      workers.start()
    }
    await bed.until(jobId, { status: 'completed' })
    expect(await storedIn('battered')).toEqual(expected)
  }, 120_000)
})
