import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installed } from '../../../../scripts/interop/install.mjs'
import { freePort, requireInstalled, startServer } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

export interface S3Server extends ServerProcess {
  readonly endpoint: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** The folder whose folders are the buckets: a key is a file in it. */
  readonly root: string
}

/** versitygw over a folder of its own, with the buckets given. Paths are in path style: `<endpoint>/<bucket>/<key>`. */
export async function startS3({ buckets }: { readonly buckets: readonly string[] }): Promise<S3Server> {
  requireInstalled('s3', installed.s3)
  const folder = await mkdtemp(join(tmpdir(), 'fencepost-s3-'))
  const root = join(folder, 'buckets')
  // Beside the objects, not in their extended attributes: not every file system has those.
  const sidecar = join(folder, 'sidecar')
  for (const path of [root, sidecar, ...buckets.map((bucket) => join(root, bucket))]) await mkdir(path)
  const port = await freePort()
  const keys = { accessKeyId: 'interop', secretAccessKey: 'interop-secret' }
  const region = 'us-east-1'
  const server = await startServer({
    name: 'versitygw',
    command: installed.s3,
    args: ['--quiet', '--port', `127.0.0.1:${port}`, '--region', region, 'posix', '--sidecar', sidecar, root],
    env: { ROOT_ACCESS_KEY: keys.accessKeyId, ROOT_SECRET_KEY: keys.secretAccessKey },
    url: `http://127.0.0.1:${port}/`,
  })
  const close = async (): Promise<void> => {
    await server.close()
    await rm(folder, { recursive: true, force: true })
  }
  return { ...server, ...keys, region, root, endpoint: `http://127.0.0.1:${port}`, close }
}
