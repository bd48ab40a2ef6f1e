import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { data } from '../src/sequences/data.ts'
import { makeSample } from '../src/sequences/sample.ts'
import { countRight } from '../src/scenes/annotate.ts'
import { annotationBed } from './bed.ts'
import { embedByHand, predictByHand, type ByHand } from './by-hand.ts'

const bed = annotationBed()
const model = { k: 3, dimensions: 512 }
let proteins: ByHand[]
let jobIds: { insert: string; compute: string; predict: string }

beforeAll(async () => {
  proteins = embedByHand(data.sample, model.k, model.dimensions)
  const { insertProteins, computeEmbeddings, predictGoTerms } = bed.operations
  bed.work()
  const insert = await bed.submit(insertProteins, { dataset: 'sample', file: data.sample })
  await bed.until(insert, { status: 'completed' })
  const compute = await bed.submit(computeEmbeddings, { dataset: 'sample', model })
  await bed.until(compute, { status: 'completed' })
  const predict = await bed.submit(predictGoTerms, { dataset: 'sample', model })
  await bed.until(predict, { status: 'completed' })
  jobIds = { insert, compute, predict }
}, 120_000)

test('the data folder is what its script makes', () => {
  const { fasta, heldOut, damaged } = makeSample()
  expect(readFileSync(data.sample, 'utf8')).toBe(fasta)
  expect(readFileSync(data.heldOut, 'utf8')).toBe(heldOut)
  expect(readFileSync(data.damaged, 'utf8')).toBe(damaged)
})

describe('insert_proteins', () => {
  test('reads the file page by page, with an event and progress for each', async () => {
    const job = await bed.engine.get(jobIds.insert)
    expect(job).toMatchObject({
      result: { pages: 7, proteins: proteins.length },
      progress: { current: proteins.length, total: proteins.length },
    })
    const pages = (await bed.engine.events(jobIds.insert)).filter(({ event }) => event === 'insert_proteins.page_done')
    expect(pages.map(({ fields }) => fields)).toEqual(
      [64, 128, 192, 256, 320, 384, 448].map((read, nth) => ({ page: nth + 1, proteins: read })),
    )
  })

  test('stores what the file holds', async () => {
    const { rows } = await bed.pool.query(
      `select accession, go_terms as "goTerms" from annotation.proteins where dataset = 'sample' order by accession`,
    )
    expect(rows).toEqual(proteins.map(({ accession, goTerms }) => ({ accession, goTerms })))
  })

  test('is refused while another reads the same dataset', async () => {
    const { insertProteins } = bed.operations
    const payload = { dataset: 'locked', file: data.damaged }
    const holder = await bed.engine.submit(insertProteins, payload, { delayMs: 3_600_000 })
    expect(await bed.engine.submit(insertProteins, payload)).toMatchObject({ submitted: false, why: 'locked' })
    if (holder.submitted) await bed.engine.cancel(holder.jobId)
  })
})

describe('compute_embeddings', () => {
  test('stores the embedding of every protein once, as it is computed by hand', async () => {
    const { rows } = await bed.pool.query<{ accession: string; vector: number[] }>(
      `select accession, vector from annotation.embeddings where dataset = 'sample' order by accession`,
    )
    expect(rows.map(({ accession }) => accession)).toEqual(proteins.map(({ accession }) => accession))
    for (const [nth, { vector }] of rows.entries()) {
      const expected = proteins[nth]?.vector ?? []
      expect(vector).toHaveLength(model.dimensions)
      expect(Math.max(...vector.map((value, place) => Math.abs(value - (expected[place] ?? NaN))))).toBeLessThan(1e-6)
    }
  })

  test('waits for its batches, and each batch for its write', async () => {
    expect(await bed.engine.get(jobIds.compute)).toMatchObject({
      result: { model: 'kmer3x512', proteins: 448 },
      children: { total: 23, completed: 23, failed: 0 },
    })
    const batches = await bed.descendants(jobIds.compute, 'embed_batch')
    const writes = await bed.descendants(jobIds.compute, 'store_embeddings')
    expect(batches.map(({ parentJobId }) => parentJobId)).toEqual(batches.map(() => jobIds.compute))
    expect(writes.map(({ parentJobId }) => parentJobId ?? '').sort()).toEqual(batches.map(({ jobId }) => jobId).sort())
    expect(batches.reduce((sum, { result }) => sum + (result as { embedded: number }).embedded, 0)).toBe(448)
    expect(writes.reduce((sum, { result }) => sum + (result as { stored: number }).stored, 0)).toBe(448)
  })

  test('has nothing to do when everything is embedded', async () => {
    const again = await bed.submit(bed.operations.computeEmbeddings, { dataset: 'sample', model })
    expect(await bed.until(again, { status: 'completed' })).toMatchObject({ result: { proteins: 0 } })
    expect(await bed.engine.list({ ancestorJobId: again })).toEqual([])
  })
})

describe('predict_go_terms', () => {
  test('predicts the terms that are predicted by hand, for the same reasons', async () => {
    const { rows } = await bed.pool.query<{ accession: string; go_term: string; neighbours: string[] }>(
      `select accession, go_term, jsonb_path_query_array(evidence, '$[*].accession') as neighbours
         from annotation.predictions where dataset = 'sample'`,
    )
    const stored = new Map<string, Map<string, string[]>>()
    for (const { accession, go_term, neighbours } of rows) {
      stored.set(accession, (stored.get(accession) ?? new Map<string, string[]>()).set(go_term, neighbours))
    }
    const expected = new Map([...predictByHand(proteins)].filter(([, terms]) => terms.size > 0))
    expect(expected.size).toBeGreaterThan(80)
    expect(stored).toEqual(expected)
  })

  test('is right about most of the held-out proteins, and not about all', async () => {
    expect(await countRight(bed.pool)).toEqual({ heldOut: 90, right: 82 })
  })

  test('gives the evidence in the results of its children, too', async () => {
    expect(await bed.engine.get(jobIds.predict)).toMatchObject({ result: { model: 'kmer3x512', proteins: 90 } })
    const batches = await bed.descendants(jobIds.predict, 'predict_batch')
    const predictions = batches.flatMap(
      ({ result }) => (result as { predictions: { accession: string }[] }).predictions,
    )
    expect(predictions).toHaveLength(90)
    expect(predictions[0]).toEqual({
      accession: 'FP0003',
      terms: expect.arrayContaining([
        {
          goTerm: expect.stringMatching(/^GO:\d{7}$/),
          score: expect.any(Number),
          evidence: expect.arrayContaining([{ accession: expect.any(String), similarity: expect.any(Number) }]),
        },
      ]),
    })
  })
})
