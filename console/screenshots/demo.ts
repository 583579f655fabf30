import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions } from 'playwright-core';

export interface Demo {
  /** Opens the console signed in, once. */
  readonly link: URL;
  stop(): Promise<void>;
}

/** Starts the demo of this checkout on a free port. */
export async function startDemo(dataFolder: string, environment: Readonly<Record<string, string>>): Promise<Demo> {
  const program = join(import.meta.dirname, '..', '..', 'bin', 'annals.js');
  const env = { ...process.env, PORT: '0', LOG_LEVEL: 'fatal', ANNALS_DATA_DIR: dataFolder, ...environment };
  const running = spawn(process.execPath, [program, 'demo'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(running, 'exit');
  let output = '';
  for await (const piece of running.stdout) {
    output += String(piece);
    const [link] = /^http\S+#link=\S+$/m.exec(output) ?? [];
    if (link !== undefined) {
      const stop = async () => {
        running.kill('SIGTERM');
        await ended;
      };
      return { link: new URL(link), stop };
    }
  }
  throw new Error(`The demo ended before it printed a link: ${output}`);
}

/** What a browser has to know to be signed in. */
export type SignedIn = NonNullable<BrowserContextOptions['storageState']>;

export async function signIn(browser: Browser, link: URL): Promise<SignedIn> {
  const context = await browser.newContext({ locale: 'en-GB' });
  const page = await context.newPage();
  await page.goto(link.href);
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  const state = await context.storageState();
  await context.close();
  return state;
}
