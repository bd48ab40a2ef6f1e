import { createServer, type AddressInfo } from 'node:net'

/** Ports of loopback that nobody uses now, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const probes = Array.from({ length: count }, () => createServer())
  const ports = await Promise.all(
    probes.map(async (probe) => {
      await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
      return (probe.address() as AddressInfo).port
    }),
  )
  await Promise.all(probes.map((probe) => new Promise((resolve) => probe.close(resolve))))
  return ports
}

export async function freePort(): Promise<number> {
  const [port] = await freePorts(1)
  return port as number
}
