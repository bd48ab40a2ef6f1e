import { describe, expect, it } from 'vitest'
import { FencepostError } from '../errors.ts'
import { openFailure, programFailure } from './failure.ts'

describe('a failure to open', () => {
  it.each([
    ['ENOSPC', 'embedded_disk_full'],
    ['EDQUOT', 'embedded_disk_full'],
    ['53100', 'embedded_disk_full'], // what Postgres answers to a statement
    ['EACCES', 'embedded_not_writable'],
    ['EROFS', 'embedded_not_writable'],
    ['ENOTDIR', 'embedded_not_writable'],
    ['ECONNREFUSED', 'embedded_start_failed'],
  ])('with %s is %s', (code, expected) => {
    const cause = Object.assign(new Error('it did not work'), { code })
    const error = openFailure(cause, '/nowhere')
    expect(error).toMatchObject({ code: expected, cause, details: { directory: '/nowhere' } })
    expect(error.message).toMatch(/\/nowhere.*it did not work/s)
  })

  it('that has a code already keeps it', () => {
    const error = new FencepostError('embedded_missing', 'not installed')
    expect(openFailure(error, '/nowhere')).toBe(error)
  })

  it.each([
    ['initdb: error: could not write to file "x": No space left on device', 'embedded_disk_full'],
    ['FATAL:  could not open file "postmaster.pid": Read-only file system', 'embedded_not_writable'],
    ['initdb: error: could not create directory "x": Permission denied', 'embedded_not_writable'],
    ['FATAL:  something else', 'embedded_start_failed'],
  ])('told by a program, %s, is %s', (output, code) => {
    const long = `${'earlier\n'.repeat(100)}${output}\n`
    const error = programFailure('postgres', '/nowhere', long, 'ended. Its log, /nowhere/server.log, says last:')
    expect(error).toMatchObject({ code, message: expect.stringContaining(output) })
    expect(error.message.split('\n').length).toBeLessThan(20)
  })
})
