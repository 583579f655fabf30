import { type CommandHere, type RunningCommand, startAnnals, startHere } from './command.ts';

/** Some processes of a command on one database, of which any may be killed and started again. */
export interface ServiceProcesses {
  /** The base URL of one of those that run now; in turn. */
  next(): Promise<string>;
  /** Kills that one as `kill -9` does, and starts another in its place. */
  replace(place: number): Promise<void>;
  /**
   * Kills that one as well, and starts one in this process in its place, which is never killed: that takes a quarter
   * of the time. Its log is not kept.
   */
  replaceForGood(place: number): Promise<void>;
  /** Ends all of them and answers all that they wrote to stderr. */
  end(): Promise<string>;
}

/** Each prints its base URL first, as `annals serve` does. */
export async function startServices(
  count: number,
  environment: Record<string, string>,
  command = 'serve',
): Promise<ServiceProcesses> {
  const settings = { PORT: '0', LOG_LEVEL: 'info', ...environment };
  const start = () => startAnnals([command], settings);
  const running: (RunningCommand | CommandHere)[] = Array.from({ length: count }, start);
  const ended: Promise<{ stderr: string }>[] = [];
  let turn = 0;
  await Promise.all(running.map(({ firstLine }) => firstLine));

  async function replaceBy(place: number, another: () => RunningCommand | CommandHere): Promise<void> {
    const killed = running[place];
    if (killed === undefined || !('process' in killed)) throw new Error(`there is no process ${place}`);
    killed.process.kill('SIGKILL');
    ended.push(killed.ended);
    running[place] = another();
    await killed.ended;
  }

  return {
    async next() {
      turn += 1;
      return await (running[turn % count]?.firstLine ?? Promise.reject(new Error('there is no service')));
    },

    replace: (place) => replaceBy(place, start),

    replaceForGood: (place) => replaceBy(place, () => startHere([command], settings)),

    async end() {
      for (const service of running) {
        if ('process' in service) service.process.kill('SIGTERM');
        else service.stop();
      }
      ended.push(...running.map(({ ended: ofProcess }) => ofProcess));
      return (await Promise.all(ended)).map(({ stderr }) => stderr).join('');
    },
  };
}
