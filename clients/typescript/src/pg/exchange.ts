import type { Connection, Message } from './internals.ts';

/** Messages that belong to what we sent, until its ReadyForQuery. The application's query sees none of them. */
export interface Exchange {
  /** Whether the message is ours; it is then dropped. Called once for each message, in order. */
  take(event: string, message: Message): boolean;
  readonly isOver: boolean;
  /** The server's error, until it is dealt with. */
  readonly error: Message | undefined;
}

const answers: ReadonlySet<string> = new Set([
  ...['parseComplete', 'bindComplete', 'noData', 'rowDescription', 'dataRow', 'commandComplete', 'notice'],
  ...['errorMessage', 'readyForQuery'],
]);

/** A setting with a Sync of its own. */
export class SettingExchange implements Exchange {
  isOver = false;
  error: Message | undefined;
  #hasBegun = false;
  readonly #ended: (error: Message | undefined) => void;

  /** `ended` is called with the server's error, if there is one, before anything else is passed on. */
  constructor(ended: (error: Message | undefined) => void) {
    this.#ended = ended;
  }

  take(event: string, message: Message): boolean {
    if (!answers.has(event)) return false;
    if (event === 'readyForQuery') {
      // The end of something that was sent before and answered twice, as by a cursor that is closed after an error.
      if (!this.#hasBegun) return false;
      this.isOver = true;
      this.#ended(this.error);
      return true;
    }
    this.#hasBegun ||= event !== 'notice';
    if (event === 'errorMessage') this.error = message;
    return true;
  }
}

interface JointOptions {
  readonly connection: Connection;
  /** Whether the application would have sent a Query message. */
  readonly isSimple: boolean;
  /** The setting has run. */
  readonly accepted: () => void;
  /** The setting failed. */
  readonly refused: (error: Message) => void;
  /** Nothing has run: the application's message is to be sent again, alone. */
  readonly repeat: () => void;
}

/** A setting and a statement of the application with one Sync. */
export class JointExchange implements Exchange {
  isOver = false;
  error: Message | undefined;
  readonly #options: JointOptions;
  /** `parsing`: the application's statement, if it would have sent a Query message, up to its BindComplete. */
  #phase: 'setting' | 'parsing' | 'running' | 'failed' | 'abandoned' = 'setting';
  readonly #notices: Message[] = [];

  constructor(options: JointOptions) {
    this.#options = options;
  }

  take(event: string, message: Message): boolean {
    if (!answers.has(event)) return false;
    switch (this.#phase) {
      case 'setting':
        return this.#takeOfSetting(event, message);
      case 'parsing':
        return this.#takeOfParsing(event, message);
      case 'running':
        this.isOver = event === 'readyForQuery';
        return this.#options.isSimple && event === 'noData';
      case 'abandoned':
        this.isOver = event === 'readyForQuery';
        return true;
      case 'failed':
        if (event === 'readyForQuery') {
          this.isOver = true;
          this.error = undefined;
          this.#options.repeat();
        }
        return true;
    }
  }

  /** The application's statement was not sent as a whole, and pg expects no answer. */
  abandon(): void {
    this.#phase = 'abandoned';
  }

  #takeOfSetting(event: string, message: Message): boolean {
    if (event === 'errorMessage') {
      this.#fail(message);
      this.#options.refused(message);
    } else if (event === 'commandComplete') {
      this.#phase = this.#options.isSimple ? 'parsing' : 'running';
      this.#options.accepted();
    }
    return true;
  }

  #takeOfParsing(event: string, message: Message): boolean {
    if (event === 'errorMessage') this.#fail(message);
    else if (event === 'notice') this.#notices.push(message);
    else if (event === 'bindComplete') {
      this.#phase = 'running';
      for (const notice of this.#notices) this.#options.connection.emit('notice', notice);
    }
    return true;
  }

  #fail(message: Message): void {
    this.#phase = 'failed';
    this.error = message;
  }
}
