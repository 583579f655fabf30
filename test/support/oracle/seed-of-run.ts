import { randomInt } from 'node:crypto';

/**
 * Gives the run one seed, which its workers take from the environment, and prints it so that a failure can be repeated.
 */
export function setup(): void {
  process.env.ANNALS_SEED ??= String(randomInt(2 ** 31 - 1));
  console.info(`ANNALS_SEED=${process.env.ANNALS_SEED}`);
}
