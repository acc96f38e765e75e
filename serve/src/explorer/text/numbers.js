// Numbers in words, and sums.

/**
 * A number with a comma before each three digits. What browsers have for it takes 20 ms to start.
 * @param {number} number
 */
export const count = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

/**
 * A number with its noun: "1 link", "2,000 links".
 * @param {number} number
 * @param {string} noun
 */
export const many = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** @param {number[]} numbers */
export const sum = (numbers) => numbers.reduce((all, number) => all + number, 0);

/**
 * The largest of some numbers, of which none is below 0.
 * @param {number[]} numbers
 */
export const most = (numbers) => numbers.reduce((least, number) => Math.max(least, number), 0);

/**
 * A number that is at least `least` and at most `most`; `least` if there is none such.
 * @param {number} number
 * @param {number} least
 * @param {number} most
 */
export const within = (number, least, most) => Math.max(least, Math.min(number, most));
