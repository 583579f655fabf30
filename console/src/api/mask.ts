/** What the service answers in place of a value that nobody may see. */
export const mask = '********';
