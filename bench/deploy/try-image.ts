// Carries out the Dockerfile in a fresh folder, without a container engine: each stage is a folder, COPY copies what git has, and RUN
// runs. Then it starts the last stage as another user, who can write to it as little as to a read-only file system, and asks its health.
// Usage: node bench/deploy/try-image.ts FOLDER postgres://user:password@host/empty-database   (as root; the folder must not be there yet)

import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const source = join(import.meta.dirname, '../..');
const [folder, databaseUrl] = process.argv.slice(2);
if (folder === undefined || databaseUrl === undefined)
  throw new Error('it needs a FOLDER and the URL of an empty database');

interface Stage {
  root: string;
  workdir: string;
  environment: Record<string, string>;
  user: string;
  entrypoint: string[];
  command: string[];
  healthcheck: string[];
}

const stages = new Map<string, Stage>();
let stage: Stage | undefined;
const text = readFileSync(join(source, 'Dockerfile'), 'utf8');
const lines = text
  .replace(/^#.*\n/gm, '')
  .replace(/\\\n\s*/g, ' ')
  .split('\n')
  .filter((line) => line !== '');

for (const line of lines) {
  const [, word = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
  if (word === 'ARG') continue;
  if (word === 'FROM') {
    const name = / AS (\w+)$/.exec(rest)?.[1] ?? 'last';
    stage = {
      root: join(resolve(folder), name),
      workdir: '/',
      environment: {},
      user: '',
      entrypoint: [],
      command: [],
      healthcheck: [],
    };
    mkdirSync(stage.root, { recursive: true });
    stages.set(name, stage);
    continue;
  }
  if (stage === undefined) throw new Error(`${word} stands before FROM`);
  if (word === 'WORKDIR') mkdirSync(join(stage.root, rest), { recursive: true });
  if (word === 'WORKDIR') stage.workdir = rest;
  else if (word === 'COPY') copy(stage, rest);
  else if (word === 'RUN') run(stage, rest);
  else if (word === 'ENV')
    for (const [, name = '', value = ''] of rest.matchAll(/(\w+)=(\S+)/g)) stage.environment[name] = value;
  else if (word === 'USER') stage.user = rest;
  else if (word === 'ENTRYPOINT') stage.entrypoint = JSON.parse(rest);
  else if (word === 'CMD') stage.command = JSON.parse(rest);
  else if (word === 'HEALTHCHECK') stage.healthcheck = JSON.parse(rest.slice(rest.indexOf('CMD ') + 4));
  else if (word !== 'EXPOSE') throw new Error(`${word} is not known here`);
}

function copy({ root, workdir }: Stage, operands: string): void {
  const words = operands.split(' ');
  const from = words[0]?.startsWith('--from=') ? stages.get(words.shift()?.slice(7) ?? '') : undefined;
  const target = words.pop() ?? '.';
  for (const word of words) {
    const inside = resolve(
      root + workdir,
      target,
      word.endsWith('/') || !target.endsWith('/') ? '' : (word.split('/').at(-1) ?? ''),
    );
    if (from !== undefined) {
      cpSync(join(from.root, word), inside, { recursive: true, verbatimSymlinks: true });
      continue;
    }
    const files = execFileSync('git', ['ls-files', word], { cwd: source, encoding: 'utf8' }).trim().split('\n');
    for (const file of files) {
      const place = word.endsWith('/')
        ? join(inside, file.slice(word.length))
        : target === './'
          ? join(root + workdir, file)
          : inside;
      mkdirSync(dirname(place), { recursive: true });
      cpSync(join(source, file), place);
    }
  }
}

function run({ root, workdir, environment }: Stage, command: string): void {
  console.log(`RUN ${command}`);
  const begun = performance.now();
  execFileSync('/bin/sh', ['-ec', command], {
    cwd: root + workdir,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  console.log(`  ${Math.round((performance.now() - begun) / 1000)} s`);
}

if (stage === undefined) throw new Error('the Dockerfile has no stage');
await tryStage(stage, databaseUrl);

async function tryStage(last: Stage, url: string): Promise<void> {
  const { root, workdir, environment, user, entrypoint, command, healthcheck } = last;
  const kilobytes = execFileSync('du', ['-sk', root + workdir], { encoding: 'utf8' }).split('\t')[0];
  console.log(`the last stage has ${Math.round(Number(kilobytes) / 1024)} MiB beside Node`);
  const [uid, gid] = user.split(':').map(Number);
  if (statSync(root).uid === uid) throw new Error('the folder belongs to the user of the image');
  const port = '18080';
  const env = {
    PATH: process.env.PATH,
    ...environment,
    HOST: '127.0.0.1',
    PORT: port,
    XDG_CACHE_HOME: '/nowhere',
    LOG_LEVEL: 'warn',
  };
  const [program = '', ...args] = [...entrypoint, ...command].map((word) => word.replace(/^\/app\//, `${root}/app/`));
  const options = { cwd: root + workdir, uid, gid };

  const without = spawn(program, args, { ...options, env, stdio: 'inherit' });
  const code = await new Promise((resolveCode) => without.once('exit', resolveCode));
  console.log(`without DATABASE_URL it ends with ${code}`);

  const secret = randomBytes(32).toString('base64');
  const service = spawn(program, args, {
    ...options,
    env: { ...env, DATABASE_URL: url, ANNALS_SECRET_KEY: secret },
    stdio: 'inherit',
  });
  let ended: number | null | undefined;
  service.once('exit', (status) => {
    ended = status;
  });
  const [asking = '', ...how] = healthcheck;
  let healthy = false;
  for (let attempt = 0; attempt < 120 && !healthy && ended === undefined; attempt += 1) {
    await sleep(500);
    try {
      execFileSync(asking, how, { ...options, env, stdio: 'ignore' });
      healthy = true;
    } catch {
      // Not yet.
    }
  }
  console.log(healthy ? 'it serves as another user, and the health check agrees' : 'it does not serve');
  service.kill('SIGTERM');
  while (ended === undefined) await sleep(100);
  console.log(`SIGTERM ends it with ${ended}`);
  process.exitCode = healthy && ended === 0 && code !== 0 ? 0 : 1;
}
