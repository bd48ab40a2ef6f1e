import { data } from '../sequences/data.ts'
import { countStored, play, type Scene } from './stage.ts'

const [strict, lenient] = [
  { k: 3, dimensions: 512 },
  { k: 2, dimensions: 512 },
]

export const badBatch: Scene = {
  name: 'bad-batch',
  title: 'One batch fails for good',
  about: 'A damaged sequence cannot be embedded. Whether its parent fails is a matter of policy.',
  async play(stage) {
    const { insertProteins, computeEmbeddings } = stage.operations
    const dataset = 'damaged'
    await play(stage, insertProteins, { dataset, file: data.damaged })
    const { root: failed } = await play(stage, computeEmbeddings, { dataset, model: strict, batch_size: 10 })
    const { root: completed } = await play(stage, computeEmbeddings, {
      dataset,
      model: lenient,
      batch_size: 10,
      fail_when: { ratio: 0.2 },
    })
    const stored = await countStored(stage.pool, dataset, lenient)
    return [
      {
        holds: failed.status === 'failed' && /DM0034/.test(failed.error ?? ''),
        text: `fail_when 'any': ${failed.status}, ${failed.error ?? 'without a reason'}`,
      },
      {
        holds: completed.status === 'completed' && completed.children?.failed === 1,
        text: `fail_when { ratio: 0.2 }: ${completed.status}, ${stored.rows} of ${stored.proteins} proteins embedded`,
      },
    ]
  },
}
