import type { Family } from '../show/view.ts'
import { countStored, needSample, ofOperation, start, type Scene } from './stage.ts'

const model = { k: 5, dimensions: 512 }

export const cancel: Scene = {
  name: 'cancel',
  title: 'The parent is cancelled',
  about: 'Queued batches are cancelled with it, in one transaction; batches that run are told to stop.',
  async play(stage) {
    const { engine, view, signal } = stage
    await needSample(stage)
    const simulate = { device_ms: 700 }
    const jobId = await start(stage, stage.operations.computeEmbeddings, {
      dataset: 'sample',
      model,
      batch_size: 10,
      simulate,
    })
    await view.watch([jobId], signal, ([family]) => completedBatches(family) > 0)
    const began = performance.now()
    const answer = await engine.cancel(jobId, { by: 'the show' })
    const ms = Math.round(performance.now() - began)
    const [family] = (await view.watch([jobId], signal)) as [Family]
    const { descendants } = family
    const left = descendants.filter(({ status }) => status === 'pending' || status === 'running')
    const stored = ofOperation(descendants, 'store_embeddings', 'completed')
    const { rows } = await countStored(stage.pool, 'sample', model)
    const cancelled = answer.cancelled ? answer.jobIds.length : 0
    return [
      {
        holds: cancelled > 1 && left.length === 0,
        text: `${cancelled} jobs were cancelled in ${ms} ms; ${left.length} are left waiting or running`,
      },
      {
        holds: rows === stored.reduce((sum, { result }) => sum + (result as { stored: number }).stored, 0),
        text: `the ${stored.length} writes that had completed stay, with ${rows} embeddings`,
      },
    ]
  },
}

function completedBatches(family: Family | undefined): number {
  return ofOperation(family?.descendants ?? [], 'embed_batch', 'completed').length
}
