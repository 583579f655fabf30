/** The size of the machine, in bytes and processors. */
export interface Machine {
  memory: number;
  processors: number;
  /** Free bytes for PostgreSQL's shared memory segments; undefined if the platform has no limit. */
  sharedMemory: number | undefined;
}

/** `full`: nothing committed is ever lost. `none`: for databases that may be lost, such as those of tests. */
export type Durability = 'full' | 'none';

const megabyte = 1024 * 1024;

/** PostgreSQL's settings for a machine that also runs the service. */
export function serverSettings(machine: Machine, port: number, durability: Durability): Record<string, string> {
  const settings: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    // A socket's path may have 107 bytes, and a data folder may be deeper than that.
    unix_socket_directories: '',
    max_connections: '200',
    shared_buffers: share(machine.memory, 8, 32, 2048),
    effective_cache_size: share(machine.memory, 2, 128, 1024 * 1024),
    work_mem: share(machine.memory, 512, 4, 32),
    maintenance_work_mem: share(machine.memory, 16, 64, 1024),
    max_parallel_workers: String(Math.max(1, Math.min(machine.processors, 8))),
    // The service needs one of two processors.
    max_parallel_workers_per_gather: String(
      machine.processors <= 2 ? 0 : Math.min(Math.floor(machine.processors / 2), 4),
    ),
    max_wal_size: '4GB',
    // pglz: the binaries lack lz4 and zstd, with which the server would not start.
    wal_compression: 'on',
    checkpoint_timeout: '15min',
    checkpoint_completion_target: '0.9',
    random_page_cost: '1.1',
    jit: 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    lc_messages: 'C',
    // The service logs failed statements without values. The server's log omits them, so that they neither fill the
    // disk nor leave a secret there.
    log_min_messages: 'log',
    log_min_error_statement: 'panic',
    log_checkpoints: 'off',
    log_line_prefix: '%m [%p] ',
  };
  // In containers /dev/shm often has 64 MB, less than a parallel query may ask for.
  if (machine.sharedMemory !== undefined && machine.sharedMemory < 512 * megabyte) {
    settings.dynamic_shared_memory_type = 'mmap';
  }
  if (durability === 'none') {
    settings.fsync = 'off';
    settings.full_page_writes = 'off';
    settings.synchronous_commit = 'off';
    // Creating and dropping a database scans all buffers, and tests create thousands.
    settings.shared_buffers = '128MB';
  }
  return settings;
}

/** The settings as the text of a configuration file. */
export function settingsFile(settings: Record<string, string>): string {
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'`);
  return `# Written at every start of the server. Put your own settings into own.conf beside this file.\n${lines.join('\n')}\n`;
}

function share(memory: number, divisor: number, minMegabytes: number, maxMegabytes: number): string {
  const megabytes = Math.floor(memory / divisor / megabyte);
  return `${Math.min(Math.max(megabytes, minMegabytes), maxMegabytes)}MB`;
}
