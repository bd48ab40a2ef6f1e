import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openServerBed, type ServerBed } from './server-bed.ts'

const tls = selfSigned()
let on: ServerBed
beforeAll(async () => {
  on = await openServerBed({ tls, headersTimeoutMs: 1_000 })
})
afterAll(() => on.close())

function selfSigned(): { key: Buffer; cert: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), 'fencepost-tls-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1']
  try {
    execFileSync('openssl', ['req', '-x509', ...kind, ...name, '-keyout', key, '-out', cert], { stdio: 'ignore' })
    return { key: readFileSync(key), cert: readFileSync(cert) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Connects without TLS, sends this, and resolves with what was received once the server has hung up. */
function plainly(text: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: on.server.port })
  socket.setEncoding('latin1')
  let received = ''
  return new Promise((resolve) => {
    socket.on('data', (some) => (received += String(some)))
    socket.on('error', () => {})
    socket.on('close', () => resolve(received))
    if (text !== '') socket.write(text)
  })
}

test('with a certificate it is served over TLS', async () => {
  expect(on.url).toMatch(/^https:/)
  const status = await new Promise((resolve, reject) => {
    const asked = request(`${on.url}/jobs`, { ca: tls.cert }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    asked.on('error', reject)
    asked.end()
  })
  expect(status).toBe(200)
})

test('a client that connects and never begins a handshake is disconnected', async () => {
  expect(await plainly('')).toBe('')
}, 60_000)

test('a client that speaks plain HTTP to a TLS port is disconnected', async () => {
  expect(await plainly('GET /jobs HTTP/1.1\r\nHost: x\r\n\r\n')).not.toContain('HTTP/1.1')
}, 60_000)
