// @ts-check

/*
 * How much of everything. `cellSeconds` ends a cell whose system has lost a job or does not get on, `totalSeconds` ends
 * what is left of a quick run; the other caps belong to one workload.
 */
export const sizes = {
  full: {
    runs: 3,
    cellSeconds: 900,
    bulk: 100_000,
    singleSeconds: 5,
    drain: 100_000,
    drainSleep: 100_000,
    outcomes: 50_000,
    pulses: 600,
    xmin: 100_000,
    million: 1_000_000,
    backlogOfPeers: true,
    children: 10_000,
    fanOutSeconds: 120,
    crashSeconds: 95,
    freezeSeconds: 60,
  },
  quick: {
    runs: 1,
    totalSeconds: 285,
    cellSeconds: 45,
    bulk: 50_000,
    singleSeconds: 1,
    drain: 50_000,
    drainSleep: 20_000,
    outcomes: 5000,
    pulses: 100,
    xmin: 20_000,
    million: 200_000,
    // Filling a queue for every system takes longer than the rest; our bar needs only our own.
    backlogOfPeers: false,
    children: 1000,
    fanOutSeconds: 20,
    crashSeconds: 40,
    freezeSeconds: 25,
  },
}
