import { expect, test } from 'vitest'
import { readEventStream, StreamIdleError, type StreamMessage } from './event-stream.ts'

async function read(...chunks: (string | Uint8Array)[]): Promise<StreamMessage[]> {
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(typeof chunk === 'string' ? encoder.encode(chunk) : chunk)
      controller.close()
    },
  })
  const messages: StreamMessage[] = []
  for await (const message of readEventStream(body, 10_000)) messages.push(message)
  return messages
}

test('reads ids, names and data, over any chunks and line ends', async () => {
  expect(await read('id: 1.1\nevent: job.started\nda', 'ta: {"a"', ':1}\n\n: ping\n\ndata:x\n\n')).toEqual([
    { id: '1.1', event: 'job.started', data: '{"a":1}' },
    { id: undefined, event: 'message', data: 'x' },
  ])
  expect(await read('event: a\r\ndata: 1\r\ndata: 2\r\n\r\n')).toEqual([{ id: undefined, event: 'a', data: '1\n2' }])
})

test('a character that is cut in two is put together again', async () => {
  const bytes = new TextEncoder().encode('data: ä\n\n')
  expect(await read(bytes.slice(0, 7), bytes.slice(7))).toEqual([{ id: undefined, event: 'message', data: 'ä' }])
})

test('what was cut off at the end is left out', async () => {
  expect(await read('retry: 1000\n\ndata: 1\n\nid: 2\ndata: {"cut')).toEqual([
    { id: undefined, event: 'message', data: '1' },
  ])
})

test('a stream over which nothing comes, not even a ping, is given up', async () => {
  const cancelled: unknown[] = []
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode('data: 1\n\n')),
    cancel: (reason) => void cancelled.push(reason),
  })
  const messages = readEventStream(body, 5)
  expect((await messages.next()).value).toMatchObject({ data: '1' })
  await expect(messages.next()).rejects.toBeInstanceOf(StreamIdleError)
  expect(cancelled).toHaveLength(1)
})
