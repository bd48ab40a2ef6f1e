import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { embeddedBed, serverOf } from '../../test/embedded-bed.ts'
import { openFolder } from './folder.ts'
import { addUser, removeUser } from './users.ts'

const { run, scratch } = embeddedBed()
const runTemporary = () => run({ temporary: true }, { env: { ...process.env, TMPDIR: scratch } })

describe('a temporary server', () => {
  it('leaves nothing behind, and clears away those whose users were killed', async () => {
    const used = openFolder(join(scratch, 'fencepost-postgres-used'))
    const user = addUser(used)
    const killed = runTemporary()
    const { directory: abandoned = '' } = await killed.opened
    killed.child.kill('SIGKILL')
    await killed.ended
    expect(serverOf(abandoned)).toBeDefined()

    const next = runTemporary()
    const { directory = '' } = await next.opened
    expect(existsSync(abandoned)).toBe(false)
    expect(existsSync(join(used.users, user))).toBe(true)
    removeUser(used, user)
    next.child.kill('SIGTERM')
    await next.ended
    expect(existsSync(directory)).toBe(false)
  })
})
