import { needSample, ofOperation, play, storedOnce, type Scene } from './stage.ts'

const model = { k: 3, dimensions: 256 }

export const retries: Scene = {
  name: 'retries',
  title: 'Batches fail, and are retried',
  about: 'Every third batch runs out of memory, every other write loses its connection before its commit.',
  async play(stage) {
    await needSample(stage)
    const simulate = { device_ms: 200, device_errors: true, write_errors: true }
    const family = await play(stage, stage.operations.computeEmbeddings, { dataset: 'sample', model, simulate })
    const retried = (operation: string) =>
      ofOperation(family.descendants, operation).filter(({ attempts }) => attempts > 1).length
    const [batches, writes] = [retried('embed_batch'), retried('store_embeddings')]
    return [
      {
        holds: family.root.status === 'completed' && batches > 0 && writes > 0,
        text: `${batches} batches and ${writes} writes were tried twice, and all have completed`,
      },
      await storedOnce(stage, family, model),
    ]
  },
}
