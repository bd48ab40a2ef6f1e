import type pg from 'pg'
import { data, readHeldOut } from '../sequences/data.ts'
import { modelName } from '../sequences/embedding.ts'
import type { Neighbour } from '../sequences/neighbours.ts'
import { play, storedOnce, type Finding, type Scene } from './stage.ts'

const model = { k: 3, dimensions: 512 }
const simulate = { device_ms: 500 }

export const annotate: Scene = {
  name: 'annotate',
  title: 'Proteins are read, embedded and annotated',
  about: 'Pages with progress, then two coordinators that wait for their children without a worker.',
  async play(stage) {
    const { operations, pool } = stage
    const read = await play(stage, operations.insertProteins, { dataset: 'sample', file: data.sample })
    const computed = await play(stage, operations.computeEmbeddings, { dataset: 'sample', model, simulate })
    const predicted = await play(stage, operations.predictGoTerms, { dataset: 'sample', model })
    const { proteins } = read.root.result as { proteins: number }
    return [
      { holds: read.root.status === 'completed', text: `insert_proteins read ${proteins} proteins` },
      await storedOnce(stage, computed, model),
      { holds: predicted.root.status === 'completed', text: await accuracy(pool) },
      ...(await someEvidence(pool)),
    ]
  },
}

/** How many of the held-out proteins got exactly the terms that they have in truth. */
export async function countRight(pool: pg.Pool, wanted = model): Promise<{ heldOut: number; right: number }> {
  const { rows } = await pool.query<{ accession: string; terms: string[] }>(
    `select accession, array_agg(go_term order by go_term) as terms from annotation.predictions
      where dataset = 'sample' and model = $1 group by accession`,
    [modelName(wanted)],
  )
  const predicted = new Map(rows.map(({ accession, terms }) => [accession, terms.join()]))
  const heldOut = [...readHeldOut()]
  const right = heldOut.filter(([accession, terms]) => predicted.get(accession) === terms.toSorted().join())
  return { heldOut: heldOut.length, right: right.length }
}

async function accuracy(pool: pg.Pool): Promise<string> {
  const { heldOut, right } = await countRight(pool)
  return `${right} of ${heldOut} held-out proteins got exactly the terms that they have in truth`
}

async function someEvidence(pool: pg.Pool): Promise<Finding[]> {
  const { rows } = await pool.query<{ accession: string; go_term: string; score: number; evidence: Neighbour[] }>(
    `select accession, go_term, score, evidence from annotation.predictions
      where dataset = 'sample' and model = $1 order by accession, go_term limit 2`,
    [modelName(model)],
  )
  return rows.map(({ accession, go_term, score, evidence }) => ({
    holds: evidence.length > 0,
    text:
      `${accession} has ${go_term} (${score.toFixed(2)}), as ` +
      evidence.map((near) => `${near.accession} (${near.similarity.toFixed(2)})`).join(', '),
  }))
}
