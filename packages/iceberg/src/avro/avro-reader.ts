import { IcebergError } from '../errors.ts'

/** Reads Avro's binary encoding from a buffer, without copying it. */
export class AvroReader {
  buffer: Buffer
  position: number

  constructor(buffer: Buffer, position = 0) {
    this.buffer = buffer
    this.position = position
  }

  get atEnd(): boolean {
    return this.position >= this.buffer.length
  }

  /** An int or a long as a number; refused when a number would round it. */
  number(): number {
    const { buffer } = this
    let byte = buffer[this.position++] ?? this.#ended()
    if (byte < 0x80) return (byte >>> 1) ^ -(byte & 1)
    const start = this.position - 1
    let zigzag = byte & 0x7f
    let factor = 128
    do {
      byte = buffer[this.position++] ?? this.#ended()
      zigzag += (byte & 0x7f) * factor
      factor *= 128
    } while (byte >= 0x80)
    if (zigzag <= Number.MAX_SAFE_INTEGER) return zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2
    this.position = start
    return this.#largeNumber()
  }

  #largeNumber(): number {
    const value = this.bigint()
    const number = Number(value)
    if (Number.isSafeInteger(number)) return number
    throw new IcebergError('avro_invalid', `The number ${value} is larger than any that is expected in its place`)
  }

  /** A long as a bigint. */
  bigint(): bigint {
    let zigzag = 0n
    let shift = 0n
    for (;;) {
      // Four bytes at a time as numbers: bigint arithmetic is slow.
      let part = 0
      let bits = 0
      let byte: number
      do {
        byte = this.buffer[this.position++] ?? this.#ended()
        part |= (byte & 0x7f) << bits
        bits += 7
      } while (byte >= 0x80 && bits < 28)
      zigzag |= BigInt(part) << shift
      if (byte < 0x80) break
      shift += 28n
      if (shift > 56n) throw new IcebergError('avro_invalid', 'A number in the file has more than 64 bits')
    }
    return BigInt.asIntN(64, (zigzag >> 1n) ^ -(zigzag & 1n))
  }

  skipNumber(): void {
    const { buffer } = this
    while ((buffer[this.position++] ?? this.#ended()) >= 0x80);
  }

  boolean(): boolean {
    return (this.buffer[this.position++] ?? this.#ended()) !== 0
  }

  float(): number {
    this.position += 4
    return this.#checked().readFloatLE(this.position - 4)
  }

  double(): number {
    this.position += 8
    return this.#checked().readDoubleLE(this.position - 8)
  }

  string(): string {
    const length = this.number()
    const start = this.position
    this.skip(length)
    return this.buffer.toString('utf8', start, this.position)
  }

  /** Bytes that share the memory of the buffer. */
  bytes(): Buffer {
    return this.fixed(this.number())
  }

  fixed(length: number): Buffer {
    const start = this.position
    this.skip(length)
    return this.buffer.subarray(start, this.position)
  }

  skip(length: number): void {
    const end = this.position + length
    if (length < 0 || end > this.buffer.length) this.#ended()
    this.position = end
  }

  #checked(): Buffer {
    if (this.position > this.buffer.length) this.#ended()
    return this.buffer
  }

  #ended(): never {
    throw new IcebergError('avro_invalid', 'The file ends in the middle of a value: it is damaged or was cut')
  }
}
