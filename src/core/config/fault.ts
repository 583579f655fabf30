/** What is wrong with a value: the end of a sentence that begins with the name of the variable. */
export class Fault {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}
