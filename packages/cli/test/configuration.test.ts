import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { maskSecret, maskUrl } from '../src/configuration/mask.ts'
import { resolveSetting } from '../src/configuration/resolve.ts'
import { settingNames, settings, type Setting } from '../src/configuration/settings.ts'
import { cliBed, type RunOptions } from './cli-bed.ts'

const bed = cliBed()

interface Shown {
  setting: string
  value: unknown
  source: string
}

async function shown(args: readonly string[], options: RunOptions = {}): Promise<Map<string, Shown>> {
  const { lines, stderr } = await bed.run(['config', ...args, '--json'], options)
  expect(stderr).toBe('')
  return new Map((lines[0] as Shown[]).map((one) => [one.setting, one]))
}

describe('a setting', () => {
  test('is taken from a flag before the environment, the environment before the file, the file before the default', async () => {
    bed.write('fencepost.config.json', '{"port": 1111, "concurrency": 5, "schema": "from_file"}')
    const found = await shown(['--port', '3333'], { env: { FENCEPOST_PORT: '2222', FENCEPOST_CONCURRENCY: '6' } })
    expect(found.get('port')).toMatchObject({ value: 3333, source: '--port' })
    expect(found.get('concurrency')).toMatchObject({ value: 6, source: '$FENCEPOST_CONCURRENCY' })
    expect(found.get('schema')).toMatchObject({ value: 'from_file', source: 'file fencepost.config.json' })
    expect(found.get('graceMs')).toMatchObject({ value: 1000, source: 'default' })
    expect(found.get('module')).toMatchObject({ value: null, source: 'not set' })
    expect([...found.keys()]).toEqual(settingNames)
  })

  test('is used from where it comes', async () => {
    const found = await shown([], { env: { FENCEPOST_PORT: '2222' } })
    expect(found.get('url')).toMatchObject({ value: 'http://127.0.0.1:2222', source: 'default' })
    const unreachable = await bed.run(['jobs', 'list'], { env: { FENCEPOST_PORT: '9' } })
    expect(unreachable).toMatchObject({ code: 7, stderr: expect.stringContaining('http://127.0.0.1:9') })
  })

  test('of the environment that is empty counts as not set', async () => {
    const found = await shown([], { env: { FENCEPOST_DATABASE: '', DATABASE_URL: 'postgres://localhost/a' } })
    expect(found.get('database')).toMatchObject({ value: 'postgres://localhost/a', source: '$DATABASE_URL' })
    const first = { FENCEPOST_DATABASE: 'postgres://localhost/b', DATABASE_URL: 'postgres://localhost/a' }
    expect((await shown([], { env: first })).get('database')).toMatchObject({ source: '$FENCEPOST_DATABASE' })
  })

  test('may be a list or a boolean', async () => {
    const found = await shown(['--queues', 'a,b', '--queues', 'c', '--no-migrate'], {
      env: { FENCEPOST_CORS_ORIGINS: 'http://a, http://b', FENCEPOST_TRUST_PROXY: '1' },
    })
    expect(found.get('queues')?.value).toEqual(['a', 'b', 'c'])
    expect(found.get('migrate')?.value).toBe(false)
    expect(found.get('corsOrigins')?.value).toEqual(['http://a', 'http://b'])
    expect(found.get('trustProxy')?.value).toEqual(['1'])
  })

  test.each(settingNames)('%s has a variable, and a default that it would accept', (name) => {
    const setting: Setting = settings[name]
    expect(setting.env.at(0)).toMatch(/^FENCEPOST_[A-Z_]+$/)
    const { value } = resolveSetting(name, { flags: {}, env: {}, file: undefined })
    const text = value === undefined ? undefined : `${value as string | number | boolean}`
    expect(resolveSetting(name, { flags: {}, env: { [setting.env[0] ?? '']: text }, file: undefined }).value).toBe(
      value,
    )
  })
})

describe('the file', () => {
  test('may be TypeScript, and is named in what is wrong with it', async () => {
    bed.write('other.config.ts', 'const port: number = 4444\nexport default { port }\n')
    expect((await shown(['--config', 'other.config.ts'])).get('port')).toMatchObject({
      value: 4444,
      source: 'file other.config.ts',
    })
    const typed = fileURLToPath(new URL('./programs/fencepost.config.ts', import.meta.url))
    const found = await shown(['--config', typed])
    expect(found.get('concurrency')?.value).toBe(3)
    expect(found.get('queues')?.value).toEqual(['slow'])
  })

  test.each([
    ['unknown.json', '{"prot": 1}', /unknown\.json has prot, which is no setting/],
    ['wrong.json', '{"port": "many"}', /port in wrong\.json is "many"; give a whole number from 0 to 65535/],
    ['array.json', '[]', /array\.json holds no object/],
    ['broken.json', '{', /broken\.json is not JSON/],
    ['broken.ts', 'export default {', /broken\.ts cannot be loaded/],
    ['empty.ts', 'export const port: number = 1\n', /empty\.ts holds no object/],
  ])('%s is refused when it holds %s', async (name, content, message) => {
    bed.write(name, content)
    const refused = await bed.run(['config', '--config', name])
    expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
  })

  test('is refused when it is not there, or there are two', async () => {
    expect((await bed.run(['config', '--config', 'missing.json'])).code).toBe(2)
    bed.write('fencepost.config.ts', 'export default {}\n')
    const refused = await bed.run(['jobs', 'list'])
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('keep one of them') })
  })
})

describe('secrets', () => {
  const token = `fp_0123456789ab_${'s'.repeat(43)}`

  test('are masked, wherever they come from', async () => {
    const env = { DATABASE_URL: 'postgres://ada:opensesame@db/jobs?sslpassword=hush', FENCEPOST_TOKEN: token }
    bed.write('unused.json', '{}')
    for (const more of [[], ['--json']]) {
      const { stdout } = await bed.run(['config', '--config', 'unused.json', ...more], { env })
      expect(stdout).toContain('ada')
      expect(stdout).toContain('fp_0123456789ab_')
      expect(stdout).not.toMatch(/opensesame|hush|sss/)
    }
  })

  test.each([
    ['postgres://ada:secret@db:5432/jobs', 'postgres://ada:********@db:5432/jobs'],
    ['postgres://ada@db/jobs?password=secret&a=b', 'postgres://ada@db/jobs?password=********&a=b'],
    ['postgres://ada@db/jobs', 'postgres://ada@db/jobs'],
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
    ['host=db password=secret', '********'],
    ['postgres://ada:12/34@db/jobs', 'postgres://********'],
    ['postgres://ada:12?34@db/jobs', 'postgres://********'],
    ['postgres://ada:12#34@db/jobs', 'postgres://********'],
    ['postgres://ada:se@cret@db/jobs', 'postgres://ada:********@db/jobs'],
    ['postgres://ada:secret@one:1,two:2/jobs', '********'],
    ['https://fp_secret@api.example.com/', 'https://********@api.example.com/'],
    ['https://api.example.com/?access_token=secret', 'https://api.example.com/?access_token=********'],
  ])('of %s are masked', (url, masked) => {
    expect(maskUrl(url)).toBe(masked)
  })

  test('of a token show which one it is', () => {
    expect(maskSecret(token)).toBe('fp_0123456789ab_********')
    expect(maskSecret('something else')).toBe('********')
  })
})

test.each([
  ['jobs list --url http://ada:opensesame@127.0.0.1:1', /--url http:\/\/ada:\*+@.*holds a user or password/],
  ['jobs list --url ftp://ada:opensesame@127.0.0.1:1', /not the address of a server/],
  ['tokens list --database postgres://ada:1/opensesame@db/jobs', /not the URL of a Postgres.*percent/],
  ['migrate --database db.example.com', /"?db.example.com"?, which is not the URL/],
])('%s says what is wrong, and never the password', async (line, message) => {
  const config = bed.write('unused.json', '{}')
  const { code, stdout, stderr } = await bed.run([...line.split(' '), '--config', config])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(message)
  expect(stderr).not.toContain('opensesame')
})

test('a connection string of libpq is told from a URL', async () => {
  const config = bed.write('unused.json', '{}')
  const database = 'host=db password=opensesame'
  const { code, stderr } = await bed.run(['migrate', '--status', '--database', database, '--config', config])
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringMatching(/connection string of libpq.*postgres:\/\//),
  })
  expect(stderr).not.toContain('opensesame')
})

describe('a line that cannot be understood', () => {
  test.each([
    ['', 0, /Usage: fencepost <command>/],
    ['nonsense', 2, /no command "nonsense"/],
    ['jobs', 2, /jobs needs a command; there are list, show/],
    ['jobs nonsense', 2, /"nonsense" is no command of jobs/],
    ['jobs show', 2, /<job_id> is missing.*\n.*fencepost jobs show --help/],
    ['jobs show a b', 2, /"b" is one argument too many/],
    ['jobs list --nonsense', 2, /--nonsense/],
    ['jobs list --limit many', 2, /--limit is "many"; give a whole number from 1, or all/],
    ['jobs list --status lost', 2, /--status is "lost"; give pending, running/],
    ['up --port 70000', 2, /--port is 70000; give a whole number from 0 to 65535/],
    ['up --port', 2, /--port/],
    ['worker --url http://a', 2, /--url/],
  ])('%s ends with %i and says why', async (line, code, message) => {
    const { stdout, stderr, ...ended } = await bed.run(
      line.split(' ').filter((word) => word !== ''),
      {
        env: { FENCEPOST_URL: 'http://127.0.0.1:9' },
        cwd: '/',
      },
    )
    expect(ended.code).toBe(code)
    expect(code === 0 ? stdout : stderr).toMatch(message)
    expect(code === 0 ? stderr : stdout).toBe('')
  })

  test('is told as JSON when that is asked for', async () => {
    const { code, stdout, stderr } = await bed.run(['jobs', 'show', '--json'], { cwd: '/' })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(JSON.parse(stderr)).toEqual({ error: { code: 'usage', message: '<job_id> is missing.', details: {} } })
  })
})
