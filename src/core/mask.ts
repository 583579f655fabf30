/** What stands in answers, change entries and log lines instead of a secret or a masked value. */
export const mask = '********';
