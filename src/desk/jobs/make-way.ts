import { Stop } from '../../core/stop-signal.ts';

/** Milliseconds that an export runs before it makes way: long enough to be worth the start of its query. */
export const minExportTurn = 500;

/** An export that runs. Its turn is over when `turn` is aborted. */
export class RunningExport {
  readonly turn = new Stop();
  readonly #began = performance.now();

  get hasHadTurn(): boolean {
    return performance.now() - this.#began >= minExportTurn;
  }
}

/** Ends the turns of so many exports, less those that are ending. The one that began first comes first. */
export function makeWay(running: Iterable<RunningExport>, wanted: number): void {
  const exports = [...running];
  const goingOn = exports.filter(({ turn }) => !turn.aborted);
  const others = wanted - (exports.length - goingOn.length);
  for (const { turn } of goingOn.filter(({ hasHadTurn }) => hasHadTurn).slice(0, Math.max(0, others))) {
    turn.abort(new Error('the turn of the tenant is over'));
  }
}
