import { createServer, type AddressInfo, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { silentLogger } from '../logger.ts'
import { ListenWakeUp } from './listen.ts'
import type { WakeUpListener } from './wake-up.ts'

const listener: WakeUpListener = { onWake() {}, onJob: async () => 'declined', onCancel() {} }

test('a server that takes the connection and says nothing holds up neither start nor stop', async () => {
  const sockets: Socket[] = []
  const stuck = createServer((socket) => {
    socket.on('error', () => {})
    sockets.push(socket.resume())
  })
  await new Promise<void>((resolve) => stuck.listen(0, '127.0.0.1', resolve))
  const { port } = stuck.address() as AddressInfo
  const wakeUp = new ListenWakeUp(`postgres://nobody@127.0.0.1:${port}/none`, 'fencepost', silentLogger)
  const since = performance.now()
  await wakeUp.start(['default'], 1, listener)
  await expect.poll(() => sockets.length).toBe(1)
  await wakeUp.stop()
  expect(performance.now() - since).toBeLessThan(5_000)
  await new Promise((resolve) => stuck.close(resolve)) // only when the connection has been given up
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true])
})
