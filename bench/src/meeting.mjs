// @ts-check

/** Where systems that are measured at the same time wait for each other. */
export class Meeting {
  #members
  /** @type {(() => void)[]} */
  #waiting = []
  /** @type {Promise<unknown>} */
  #turn = Promise.resolve()

  /** @param {number} members */
  constructor(members) {
    this.#members = members
  }

  /** Resolves when every member that has not left is here. */
  async all() {
    await new Promise((resolve) => {
      this.#waiting.push(() => resolve(undefined))
      this.#open()
    })
  }

  /** One member after another, in the order of asking. */
  inTurn(work) {
    const mine = this.#turn.then(work)
    this.#turn = mine.catch(() => {})
    return mine
  }

  /** One member less to wait for: it is done, or has failed. */
  leave() {
    this.#members -= 1
    this.#open()
  }

  #open() {
    if (this.#waiting.length < this.#members) return
    for (const go of this.#waiting.splice(0)) go()
  }
}
