import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { installed } from '../../../../scripts/interop/install.mjs'
import { freePort, requireInstalled, startInFolder, startServer } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

export interface S3Keys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

export interface S3Server extends ServerProcess, S3Keys {
  readonly endpoint: string
  readonly region: string
  /** The folder whose folders are the buckets: a key is a file in it. */
  readonly root: string
  /** Makes keys that may do everything, until they are revoked. */
  readonly issue: (keys: S3Keys) => Promise<void>
  readonly revoke: (keys: S3Keys) => Promise<void>
}

/** versitygw over a folder of its own, with the buckets given. Paths are in path style: `<endpoint>/<bucket>/<key>`. */
export async function startS3({ buckets }: { readonly buckets: readonly string[] }): Promise<S3Server> {
  requireInstalled('s3', installed.s3)
  return startInFolder('s3', async (folder) => {
    const root = join(folder, 'buckets')
    const users = join(folder, 'users')
    // Beside the objects, not in their extended attributes: not every file system has those.
    const sidecar = join(folder, 'sidecar')
    for (const path of [root, users, sidecar, ...buckets.map((bucket) => join(root, bucket))]) await mkdir(path)
    const port = await freePort()
    const endpoint = `http://127.0.0.1:${port}`
    const keys = { accessKeyId: 'interop', secretAccessKey: 'interop-secret' }
    const region = 'us-east-1'
    const server = await startServer({
      name: 'versitygw',
      command: installed.s3,
      args: ['--quiet', '--port', `127.0.0.1:${port}`, '--region', region].concat(
        ['--iam-dir', users, '--iam-cache-disable'],
        ['posix', '--sidecar', sidecar, root],
      ),
      env: { ROOT_ACCESS_KEY: keys.accessKeyId, ROOT_SECRET_KEY: keys.secretAccessKey },
      url: endpoint,
    })
    const admin = async (...args: string[]): Promise<void> => {
      const who = ['--access', keys.accessKeyId, '--secret', keys.secretAccessKey, '--endpoint-url', endpoint]
      await promisify(execFile)(installed.s3, ['admin', ...who, ...args])
    }
    return {
      ...server,
      ...keys,
      region,
      root,
      endpoint,
      issue: (made) =>
        admin('create-user', '--access', made.accessKeyId, '--secret', made.secretAccessKey, '--role', 'admin'),
      revoke: (gone) => admin('delete-user', '--access', gone.accessKeyId),
    }
  })
}

/** Iceberg's properties for it, without keys. */
export function s3Address(s3: S3Server): Record<string, string> {
  return {
    's3.endpoint': s3.endpoint,
    's3.path-style-access': 'true',
    'client.region': s3.region,
    's3.region': s3.region,
  }
}

export function s3Properties(s3: S3Server, keys: S3Keys = s3): Record<string, string> {
  return {
    ...s3Address(s3),
    's3.access-key-id': keys.accessKeyId,
    's3.secret-access-key': keys.secretAccessKey,
  }
}
