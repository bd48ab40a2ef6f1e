/** Writes Avro's binary encoding into a buffer that grows. */
export class AvroWriter {
  #buffer = Buffer.allocUnsafe(1 << 16)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** The bytes so far, in the writer's own memory: copy what is to outlive `clear`. */
  get written(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  clear(): void {
    this.#length = 0
  }

  /** An int or a long. */
  number(value: number): void {
    this.#reserve(10)
    if (value >= -0x40000000 && value < 0x40000000) {
      let zigzag = (value << 1) ^ (value >> 31)
      while (zigzag > 0x7f) {
        this.#buffer[this.#length++] = (zigzag & 0x7f) | 0x80
        zigzag >>>= 7
      }
      this.#buffer[this.#length++] = zigzag
    } else {
      this.bigint(BigInt(value))
    }
  }

  bigint(value: bigint): void {
    this.#reserve(10)
    let zigzag = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n))
    while (zigzag > 0x7fn) {
      this.#buffer[this.#length++] = Number(zigzag & 0x7fn) | 0x80
      zigzag >>= 7n
    }
    this.#buffer[this.#length++] = Number(zigzag)
  }

  boolean(value: boolean): void {
    this.#reserve(1)
    this.#buffer[this.#length++] = value ? 1 : 0
  }

  float(value: number): void {
    this.#reserve(4)
    this.#length = this.#buffer.writeFloatLE(value, this.#length)
  }

  double(value: number): void {
    this.#reserve(8)
    this.#length = this.#buffer.writeDoubleLE(value, this.#length)
  }

  string(value: string): void {
    const length = Buffer.byteLength(value, 'utf8')
    this.number(length)
    this.#reserve(length)
    this.#buffer.write(value, this.#length, 'utf8')
    this.#length += length
  }

  byteString(value: Uint8Array): void {
    this.number(value.length)
    this.raw(value)
  }

  /** Bytes as they are: a fixed value, or what is encoded already. */
  raw(value: Uint8Array): void {
    this.#reserve(value.length)
    this.#buffer.set(value, this.#length)
    this.#length += value.length
  }

  /** A value of a union of null and one other type. */
  optional<T>(value: T | null | undefined, write: (value: T) => void): void {
    if (value === null || value === undefined) {
      this.number(0)
    } else {
      this.number(1)
      write(value)
    }
  }

  list<T>(items: readonly T[], write: (item: T) => void): void {
    if (items.length > 0) {
      this.number(items.length)
      for (const item of items) write(item)
    }
    this.number(0)
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + bytes))
    this.#buffer.copy(larger, 0, 0, this.#length)
    this.#buffer = larger
  }
}
