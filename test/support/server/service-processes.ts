import { type RunningCommand, startAnnals } from './command.ts';

/** Some processes of a command on one database, of which any may be killed and started again. */
export interface ServiceProcesses {
  /** The base URL of one of those that run now; in turn. */
  next(): Promise<string>;
  /** Kills that one as `kill -9` does, and starts another in its place. */
  replace(place: number): Promise<void>;
  /** Ends all of them and answers all that they wrote to stderr. */
  end(): Promise<string>;
}

/** Each prints its base URL first, as `annals serve` does. */
export async function startServices(
  count: number,
  environment: Record<string, string>,
  command = 'serve',
): Promise<ServiceProcesses> {
  const start = () => startAnnals([command], { PORT: '0', LOG_LEVEL: 'info', ...environment });
  const running: RunningCommand[] = Array.from({ length: count }, start);
  const ended: Promise<{ stderr: string }>[] = [];
  let turn = 0;
  await Promise.all(running.map(({ firstLine }) => firstLine));

  return {
    async next() {
      turn += 1;
      return await (running[turn % count]?.firstLine ?? Promise.reject(new Error('there is no service')));
    },

    async replace(place) {
      const killed = running[place];
      killed?.process.kill('SIGKILL');
      if (killed !== undefined) ended.push(killed.ended);
      running[place] = start();
      await killed?.ended;
    },

    async end() {
      for (const { process } of running) process.kill('SIGTERM');
      ended.push(...running.map(({ ended: ofProcess }) => ofProcess));
      return (await Promise.all(ended)).map(({ stderr }) => stderr).join('');
    },
  };
}
