import { expect, test } from 'vitest'
import { QueueLabels } from './queue-labels.ts'

test('beside the queues of the operations the first hundred have a label, and the rest share one', () => {
  const labels = new QueueLabels(['default', 'slow'])
  for (let nth = 0; nth < 100; nth += 1) expect(labels.labelOf(`q${nth}`)).toBe(`q${nth}`)
  expect(labels.labelOf('q100')).toBe('other')
  expect(['slow', 'q7', 'default'].map((queue) => labels.labelOf(queue))).toEqual(['slow', 'q7', 'default'])
})
